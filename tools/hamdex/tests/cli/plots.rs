//! Plots and histograms: what is printed as figures is drawn, mark for mark.

use roxmltree::{Document, Node};

use crate::support::{Bench, json_lines, stored};

fn count(svg: &Document<'_>, wanted: impl Fn(&Node<'_, '_>) -> bool) -> usize {
    svg.descendants().filter(|node| wanted(node)).count()
}

fn words<'a>(svg: &'a Document<'_>) -> Vec<&'a str> {
    let texts = svg.descendants().filter(|node| node.has_tag_name("text"));
    texts.filter_map(|node| node.text()).map(str::trim).collect()
}

#[test]
fn every_plan_is_a_mark_with_its_name() {
    let bench = Bench::new();
    for call in [
        "plan --count 17179869184 -k 3",
        "plan --count 1000000 -k 8",
        "plan --count 5000 --bits 128 -k 20",
    ] {
        let plans = bench.ok(&format!("{call} --json --plot plans.svg --overwrite")).json();
        let text = bench.read("plans.svg");
        let svg = Document::parse(&text).unwrap();
        let dots = count(&svg, |node| node.has_tag_name("circle") || node.has_tag_name("polygon"));
        // One of each shape stands in the legend.
        assert_eq!(dots, plans.len() + 2, "{call}");
        let words = words(&svg);
        for plan in &plans {
            let name = plan["plan"].as_str().unwrap();
            assert!(words.contains(&name), "{name} of {call}");
        }
        assert!(svg.root_element().attribute("aria-label").unwrap().starts_with("Plans for "));
    }
}

const LABELS: &str = "a\tb\nc\td\n";

fn labelled() -> Bench {
    let bench = Bench::new();
    let rows = [
        ("a", "sunny days are here again and everybody goes outside to sit in the grass"),
        ("b", "sunny days are here again and everybody goes outside to lie in the grass"),
        ("c", "parliament voted on tuesday to raise the tax on sugar by a tenth"),
        ("d", "parliament voted on wednesday to raise the tax on sugar by a fifth"),
        ("e", "an article about something else altogether: how snails climb wet glass"),
    ];
    let line = |(id, text)| format!("{}\n", serde_json::json!({ "id": id, "text": text }));
    bench.file("rows.jsonl", rows.map(line).concat()).file("labels.tsv", LABELS);
    bench
}

#[test]
fn precision_recall_and_f1_are_a_curve_for_each_verification() {
    let bench = labelled();
    let printed =
        bench.ok("evaluate rows.jsonl --pairs labels.tsv --json --plot curves.svg").json();
    let mut tried: Vec<_> = printed.iter().map(|row| row["verification"].to_string()).collect();
    tried.sort();
    tried.dedup();
    assert!(tried.len() >= 4, "{tried:?}");
    let text = bench.read("curves.svg");
    let svg = Document::parse(&text).unwrap();
    let curves = count(&svg, |node| {
        node.has_tag_name("polyline")
            && node.attribute("stroke-width") == Some("2")
            && node.attribute("points").unwrap().split_whitespace().count() > 2
    });
    assert_eq!(curves, 3 * tried.len());
    // The curve of distance alone has a circle for each figure, and one in the legend.
    let figures = |measure: &str| {
        let rows = printed.iter().filter(|row| row["what"] == "curve");
        rows.filter(|row| row[measure].is_number()).count() + 1
    };
    let circles = count(&svg, |node| {
        node.has_tag_name("circle") && node.attribute("fill") == Some("#0072B2")
    });
    assert_eq!(circles, ["precision", "recall", "f1"].map(figures).iter().sum::<usize>());
    let words = words(&svg);
    for word in [
        "precision, simhash",
        "recall, simhash",
        "F1, simhash",
        "distance alone",
        "distance (bits)",
    ] {
        assert!(words.contains(&word), "{word} in {words:?}");
    }
    bench.ok("evaluate rows.jsonl --pairs labels.tsv --all-sketches --plot all.html");
    assert_eq!(bench.read("all.html").matches("<svg ").count(), 9, "three of each signature");
}

#[cfg(feature = "png")]
#[test]
fn a_plot_that_ends_in_png_is_a_lettered_picture() {
    let bench = Bench::new();
    bench.ok("plan --count 1000000 --plot plans.png");
    let png = std::fs::read(bench.path("plans.png")).unwrap();
    let pixels = tiny_skia::Pixmap::decode_png(&png).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (2200, 1440));
    let ink = pixels.pixels().iter().filter(|pixel| pixel.red() < 0x60 && pixel.blue() < 0x60);
    assert!(ink.count() > 2000, "the picture is lettered");
}

#[test]
fn a_plot_takes_the_form_of_its_extension() {
    let bench = Bench::new();
    bench.ok("plan --count 1000000 --plot plans.HTML");
    let page = bench.read("plans.HTML");
    let plans = json_lines(&bench.ok("plan --count 1000000 --json").stdout);
    let rows = page.matches("<tr>").count();
    assert_eq!(rows, plans.len() + 1, "the page has the figures as a table");
    assert!(page.contains("<svg role=\"img\"") && !page.contains("<script"));
}

#[test]
fn plots_that_cannot_be_written_are_refused_before_the_work() {
    let bench = labelled();
    let evaluate = "evaluate rows.jsonl --pairs labels.tsv";
    for call in [evaluate, "plan --count 1000"] {
        bench.run(&format!("{call} --plot a.pdf")).refused(2, &["a.pdf", ".svg, .png or .html"]);
        bench.run(&format!("{call} --plot plot")).refused(2, &[".svg, .png or .html"]);
        let refused = bench.run(&format!("{call} --plot none/a.svg"));
        refused.refused(6, &["none", "check the path"]);
        assert!(!refused.stderr.contains("labelled"), "{refused:?}");
    }
    bench.run("evaluate rows.jsonl --suggest --plot a.svg").refused(2, &["--suggest", "--plot"]);
    bench.run("plan --calibrate --plot a.svg").refused(2, &["--count"]);
}

#[test]
fn stats_draws_histograms_for_people_and_keeps_its_object() {
    let bench = stored();
    let row = |n| format!("{{\"id\":\"x{n}\",\"fingerprint\":\"00000000000000ff\"}}\n");
    bench.file("more.jsonl", (0..40).map(row).collect::<Vec<_>>().concat());
    bench.ok("insert idx more.jsonl");
    let drawn = bench.ok("stats idx").stdout;
    for line in [
        "bit balance: ones in 0.0 % (bit 32) to 66.7 % (bit 62) of the fingerprints",
        "documents of a fingerprint",
        "32 to 63  1  \u{2588}",
        "fingerprints of a prefix of 16 bits: at most 2, 5e-5 if all were even",
        "bytes of a key: 2.6 each",
    ] {
        assert!(drawn.contains(line), "{line} in {drawn}");
    }
    assert!(!drawn.contains('\u{1b}'), "no colour where it is no terminal");
    assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
    let object = bench.ok("stats idx --json").stdout;
    let names: Vec<_> = json_lines(&object)[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        names.join(" "),
        "documents fingerprints format bits distance plan pipeline singles runs bytes \
         bytes_docs keeps_features with_features bytes_features bytes_postings bytes_tables tables resources"
    );
    bench.file("none.jsonl", "");
    bench.ok("build empty none.jsonl");
    assert!(!bench.ok("stats empty").stdout.contains("balance"), "nothing is not drawn");
}
