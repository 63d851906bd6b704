//! Pictures of arrays, in files and in the terminal.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod support;

use support::{Bench, npy};

/// Width, height and pixels of a picture, as red, green, blue and alpha.
fn read(bench: &Bench, name: &str) -> (u32, u32, Vec<[u8; 4]>) {
    let file = std::io::BufReader::new(std::fs::File::open(bench.path().join(name)).unwrap());
    let mut reader = png::Decoder::new(file).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut bytes).unwrap();
    let size = info.buffer_size();
    let bytes = &bytes[..size];
    let pixels = match info.color_type {
        png::ColorType::Rgba => bytes.chunks(4).map(|p| [p[0], p[1], p[2], p[3]]).collect(),
        png::ColorType::GrayscaleAlpha => {
            bytes.chunks(2).map(|p| [p[0], p[0], p[0], p[1]]).collect()
        }
        other => panic!("{other:?}"),
    };
    (info.width, info.height, pixels)
}

fn grid() -> Bench {
    let bench = Bench::new();
    bench.write("a.npy", npy(&[2, 3, 4], (0..24).map(|i| i as f32)));
    bench.line("import a.npy a --dims time,y,x");
    bench
}

#[test]
fn any_two_dimensions_in_any_order() {
    let bench = grid();
    bench.fails("export a p.png", 2, "a picture shows two dimensions");
    bench.line("export a p.png --range time=1");
    let (width, height, pixels) = read(&bench, "p.png");
    assert_eq!((width, height), (4, 3));
    assert_eq!((pixels[0][0], pixels[11][0]), (0, 255));
    bench.line("export a q.png --range time=1 --dims x,y");
    let (width, height, turned) = read(&bench, "q.png");
    assert_eq!((width, height), (3, 4));
    for row in 0..3 {
        for column in 0..4 {
            assert_eq!(turned[column * 3 + row], pixels[row * 4 + column]);
        }
    }
    bench.line("export a u.png --range time=1 --up");
    let (_, _, up) = read(&bench, "u.png");
    assert_eq!(up[..4], pixels[8..]);
    bench.line("export a t.png --range y=0");
    assert_eq!((read(&bench, "t.png").0, read(&bench, "t.png").1), (4, 2));
}

#[test]
fn scales_masks_and_bars() {
    let bench = grid();
    let line = "export a p.png --range time=0 --force";
    bench.line(&format!("{line} --scale log --mask 11"));
    let (_, _, pixels) = read(&bench, "p.png");
    // Nothing up to 0 has a logarithm, and 11 is masked.
    assert_eq!((pixels[0][3], pixels[11][3]), (0, 0));
    assert_eq!((pixels[1], pixels[10][0]), ([0, 0, 0, 255], 255));
    let ten = f64::from(pixels[3][0]) / 255.0;
    assert!((ten - 3f64.ln() / 10f64.ln()).abs() < 0.01);
    bench.line(&format!("{line} --scale percentile:10:90"));
    let (_, _, pixels) = read(&bench, "p.png");
    assert_eq!((pixels[0][0], pixels[1][0], pixels[11][0]), (0, 0, 255));
    bench.line(&format!("{line} --colours viridis --bar"));
    let (width, height, _) = read(&bench, "p.png");
    assert_eq!((width, height), (100, 3 + 23));
    bench.line(&format!("{line} --size 2"));
    assert_eq!(read(&bench, "p.png").0, 2);
    bench.fails(&format!("{line} --scale log:0:5"), 2, "above 0");
}

#[test]
fn sparse_cells_make_a_density_or_a_mean() {
    let bench = Bench::new();
    bench.write("s.csv", "y,x,v\n0,0,1\n0,0,3\n0,2,9\n1,1,5\n");
    bench.line("import s.csv s --dims y,x");
    bench.line("export s d.png");
    let (width, height, pixels) = read(&bench, "d.png");
    assert_eq!((width, height), (3, 2));
    let shown: Vec<u8> = pixels.iter().map(|p| p[3]).collect();
    assert_eq!(shown, [255, 0, 255, 0, 255, 0]);
    assert_eq!((pixels[0][0], pixels[2][0]), (255, 0));
    bench.line("export s m.png --attrs v --scale 0:10");
    let (_, _, pixels) = read(&bench, "m.png");
    assert_eq!([pixels[0][0], pixels[2][0], pixels[4][0]], [51, 230, 128]);
    bench.line("export s w.png --attrs v --where 'v > 4' --dims x,y");
    let (width, height, _) = read(&bench, "w.png");
    assert_eq!((width, height), (2, 2));
}

#[test]
fn cells_that_do_not_meet_a_condition_are_transparent() {
    let bench = grid();
    bench.line("export a p.png --range time=0 --where 'value > 5' --dims y,x");
    let (width, height, pixels) = read(&bench, "p.png");
    // Rows without any cell are cut off.
    assert_eq!((width, height), (4, 2));
    assert_eq!(pixels.iter().filter(|p| p[3] == 255).count(), 6);
}

#[test]
fn terminals_draw_with_characters_and_protocols() {
    let bench = grid();
    let said = bench.line("cat a --range time=0 --picture");
    assert_eq!(said.out.lines().count(), 2);
    assert!(said.out.contains('█') && said.out.lines().next().unwrap().chars().count() <= 4);
    let said = bench.line("cat a --range time=0 --picture=sixel");
    assert!(
        said.out.starts_with("\u{1b}P0;1;0q\"1;1;4;3"),
        "{:?}",
        said.out
    );
    let said = bench.line("cat a --range time=0 --picture=kitty");
    assert!(said.out.starts_with("\u{1b}_Ga=T,f=100"));
    let coloured = bench.line("cat a --range time=0 --picture=blocks --color always");
    assert!(
        coloured.out.contains("\u{1b}[0;38;2;"),
        "{:?}",
        coloured.out
    );
}
