#!/bin/sh
# Makes the pictures at the top of the README with the program itself:
#   docs/images/readme.sh [PROGRAM]
# PROGRAM is `azulejo` unless given. It needs awk and sed besides.
set -eu
azulejo=$(command -v "${1:-azulejo}")
case $azulejo in /*) ;; *) azulejo=$PWD/$azulejo ;; esac
images=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export NO_COLOR=1

# A tile that was painted on three days, as it was on each of them.
"$azulejo" quickstart --keep sample --quiet > /dev/null
for day in 1 2 3; do
  # Five times as large: a cell is a pixel.
  awk -F'[:,}]' '{ y = $2; x = $4; colour = $0; sub(/.*"colour":/, "", colour)
    for (i = 0; i < 5; i++) for (j = 0; j < 5; j++)
      printf "{\"y\":%d,\"x\":%d,\"colour\":%s\n", y * 5 + i, x * 5 + j, colour }' sample/day$day.ndjson > day$day.ndjson
  more=$([ $day = 1 ] && echo "--dims y,x --dense --type colour=UINT8" || echo "--append --overwrite")
  "$azulejo" import day$day.ndjson tile $more --at 2024-05-0$day --quiet
done
for day in 1 2 3; do
  "$azulejo" export tile "$images/readme-day$day.png" --at 2024-05-0$day --force --quiet
done

# An island, of which no map was ever drawn.
awk 'BEGIN {
  print "y,x,height"
  for (y = 0; y < 260; y++) for (x = 0; x < 640; x++) {
    u = x / 640; v = y / 260; h = 0; a = 1; f = 3
    for (o = 0; o < 6; o++) {
      h += a * sin(f * u * 2.1 + 1.7 * o + 1.3 * sin(f * v * 1.4 + o)) * cos(f * v * 1.9 - 0.8 * o + 1.1 * sin(f * u * 1.3 - o))
      a *= 0.52; f *= 1.93
    }
    d = (u - 0.5) ^ 2 * 3.2 + (v - 0.5) ^ 2 * 4.5
    printf "%d,%d,%.1f\n", y, x, 1400 * (h * 0.8 + 0.75 - d * 2.6)
  }
}' > island.csv
"$azulejo" import island.csv island --dims y,x --dense --type height=FLOAT32 --quiet
"$azulejo" export island "$images/readme-island.png" --colours viridis --scale 0:2400 --force --quiet

# What a terminal shows.
printf 'id,quality\n1,0\n2,\n3,5\n4,\n' > cells.csv
"$azulejo" import cells.csv cells --dims id --at 2024-05-01 --quiet
printf 'id,quality\n5,7\n' > more.csv
"$azulejo" import more.csv cells --append --at 2024-05-02 --quiet
show() {
  line="\$ azulejo"
  for word; do
    case $word in *" "*) line="$line '$word'" ;; *) line="$line $word" ;; esac
  done
  echo "$line"
  "$azulejo" "$@" 2>&1 | fold -s -w 92 || true
  echo
}
{
  show delete cells --where 'quality < 1'
  show delete cells --where '(quality < 1) or quality is null' --dry-run
  show delete cells --where '(quality < 1) or quality is null' --at 2024-05-03 --quiet
  show restore cells --at 2024-05-02
  show agg cells count nulls:quality
} > terminal.txt
awk 'BEGIN { size = 13; line = 18 }
{ gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/>/, "\\&gt;"); text[NR] = $0 }
END {
  while (NR > 1 && text[NR] == "") NR--
  height = NR * line + 24
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 %d\" font-family=\"monospace\" font-size=\"%d\">\n", height, size
  printf "<rect width=\"760\" height=\"%d\" rx=\"6\" fill=\"#10233d\"/>\n", height
  for (i = 1; i <= NR; i++) if (text[i] != "") {
    colour = text[i] ~ /^\$/ ? "#ffd479" : text[i] ~ /^error/ ? "#ff8f80" : "#e4ecf5"
    printf "<text x=\"14\" y=\"%d\" fill=\"%s\" xml:space=\"preserve\">%s</text>\n", i * line + 8, colour, text[i]
  }
  print "</svg>"
}' terminal.txt > "$images/readme-terminal.svg"
