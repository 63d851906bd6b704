/** Rounds of requests: one belongs to the next round if it began after an answer of this one came. */
export function roundsOf(requests) {
  let [rounds, answered] = [0, -Infinity];
  for (const { begun, ended = Infinity } of requests) {
    if (rounds === 0 || begun > answered) {
      rounds++;
      answered = ended;
    }
    answered = Math.min(answered, ended);
  }
  return rounds;
}
