//! The page of a deduplication: what it shows, of every kind of input, and in a browser.
//!
//! And plots and histograms: what is printed as figures is drawn, mark for mark.

use std::path::PathBuf;
use std::process::Command;

use roxmltree::{Document, Node};

use crate::support::{Bench, json_lines, stored};

const SCRIPT: &str = "<script>alert(1)</script>";

/// Near-duplicates with markup in ids and texts, long ones, Chinese ones and some that stand alone.
fn rows() -> String {
    let long = "the committee met on tuesday and spoke of roads, bridges and the price of bread. "
        .repeat(40);
    let rows = [
        (
            SCRIPT.to_owned(),
            format!("{SCRIPT}</td> sunny days are here again & everybody sits in the grass"),
        ),
        (
            "b\"><img src=x onerror=alert(2)>".to_owned(),
            format!("{SCRIPT}</td> sunny days are here again & everybody lies in the grass"),
        ),
        ("long".to_owned(), format!("{long}one {long}")),
        ("longer".to_owned(), format!("{long}two {long}")),
        (
            "一".to_owned(),
            "北京大学的研究人员发表了一篇关于气候变化的新论文，引起了广泛的关注和讨论".to_owned(),
        ),
        (
            "二".to_owned(),
            "北京大学的科研人员发表了一篇关于气候变化的新论文，引起了广泛的关注和讨论。".to_owned(),
        ),
        (
            "alone".to_owned(),
            "an article about something else altogether: how snails climb wet glass".to_owned(),
        ),
    ];
    let line = |(id, text): &(String, String)| {
        format!("{}\n", serde_json::json!({ "id": id, "text": text }))
    };
    rows.iter().map(line).collect()
}

/// The drawings of a page, each as XML.
fn drawings(page: &str) -> Vec<&str> {
    let parts = page.split("<svg ").skip(1);
    let part = |part: &str| {
        let end = part.find("</svg>").unwrap() + "</svg>".len();
        let start = part.as_ptr() as usize - page.as_ptr() as usize - "<svg ".len();
        start..start + end + "<svg ".len()
    };
    parts.map(|one| &page[part(one)]).collect()
}

fn circles(svg: &str) -> usize {
    let svg = Document::parse(svg).unwrap();
    svg.descendants().filter(|node| node.has_tag_name("circle")).count()
}

#[test]
fn a_page_shows_counts_charts_and_groups_and_no_markup_of_a_document() {
    let bench = Bench::new();
    bench.file("rows.jsonl", rows());
    bench.ok("dedup rows.jsonl -o out -k 16 --verify edit:0.8 --report out/report.html");
    let page = bench.read("out/report.html");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(page.contains("b&quot;&gt;&lt;img src=x onerror=alert(2)&gt;"), "{page}");
    for foreign in ["<script", "<img", " onerror=\"", " src=\"", " href=", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(
        page.starts_with("<!DOCTYPE html><html lang=\"en\">")
            && page.contains("default-src 'none'")
    );
    for words in
        ["<b>7</b>", "kept, 57.1 %", "edit:0.8", "Group 3: 2 documents", "removed: <bdi>二</bdi>"]
    {
        assert!(page.contains(words), "{words} in {page}");
    }
    // Chinese by the character, everything else by the word.
    for own in [
        "研<mark>究</mark>",
        "<mark>科</mark>研",
        "<mark>sits</mark>",
        "<mark>lies</mark>",
        "<mark>two</mark>",
    ] {
        assert!(page.contains(own), "{own} in {page}");
    }
    assert!(page.contains("equal characters"), "long texts are shortened");
    assert!(page.len() < 200_000, "{} bytes", page.len());
    let drawings = drawings(&page);
    let titles = [
        "Sizes of groups",
        "Distances of removed",
        "Similarity of removed",
        "Lengths of texts",
        "Skewed prefixes",
        "Balance of bits",
    ];
    assert_eq!(drawings.len(), titles.len());
    for (svg, title) in drawings.iter().zip(titles) {
        assert!(svg.contains(&format!("role=\"img\" aria-label=\"{title}")), "{title}");
    }
    assert_eq!(
        (circles(drawings[0]), circles(drawings[5])),
        (1, 64),
        "one size of groups, 64 bits"
    );
    assert_eq!(
        page.matches("<details>").count(),
        titles.len(),
        "each chart has its figures beside"
    );
    let kept = bench.read("out/kept.jsonl");
    assert_eq!(kept.lines().count(), 4, "a report changes nothing else");
}

#[test]
fn every_kind_of_input_has_its_page() {
    let bench = stored();
    let text = "sunny days are here again and everybody goes outside to sit in the grass";
    bench
        .file("rows.csv", format!("id,text\na,{text}\nb,{text} now\n"))
        .file("docs/a.txt", text)
        .file("docs/b.html", format!("<html><body><p>{text}</p></body></html>"))
        .file("none.jsonl", "")
        .file("a.u64", [1_u64, 3, u64::MAX].map(u64::to_le_bytes).concat());
    for (input, words) in [
        ("rows.csv", ["<bdi>b</bdi>", "<mark> now</mark>"]),
        ("docs", ["<bdi>b.html</bdi>", "sit in the grass"]),
        ("a.u64", ["<bdi>1</bdi>, 1 bit away", "no lengths of texts"]),
        ("none.jsonl", ["There were no documents", "No two documents"]),
        ("prints.jsonl --against idx", ["of them near the index", "Distances of removed"]),
    ] {
        bench.ok(&format!("dedup {input} -o out -k 8 --report page.html --overwrite"));
        let page = bench.read("page.html");
        for word in words {
            assert!(page.contains(word), "{input}: {word} in {page}");
        }
        for svg in drawings(&page) {
            Document::parse(svg).unwrap();
        }
    }
    bench.feed("dedup - -o out -k 16 --report page.html --overwrite", rows().as_bytes());
    assert!(bench.read("page.html").contains("<mark>科</mark>研"));
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_work() {
    let bench = Bench::new();
    bench.file("rows.jsonl", rows()).file("folder.html/x", "");
    bench.run("dedup rows.jsonl -o out --report page.pdf").refused(2, &["page.pdf", ".html"]);
    bench
        .run("dedup rows.jsonl -o out --report none/page.html")
        .refused(6, &["none", "check the path"]);
    bench
        .run("dedup rows.jsonl -o out --report folder.html")
        .refused(1, &["folder.html", "is a directory"]);
    assert!(!bench.path("out/kept.jsonl").exists());
}

/// A browser, if there is one.
fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let all =
        std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    all.into_iter().find(|path| path.is_file())
}

#[test]
fn a_browser_shows_the_page_light_and_dark_without_a_complaint() {
    let Some(browser) = browser() else {
        eprintln!("skipped: there is no chromium to open the page with");
        return;
    };
    let bench = Bench::new();
    bench.file("rows.jsonl", rows());
    bench.ok("dedup rows.jsonl -o out -k 16 --verify edit:0.8 --report page.html");
    let page = format!("file://{}", bench.path("page.html").display());
    let shot = |scheme: &str| {
        let picture = bench.path(&format!("{scheme}.png"));
        let mut command = Command::new(&browser);
        command
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
            .args(["--enable-logging=stderr", "--v=0", "--window-size=1200,2400"])
            .arg(format!("--user-data-dir={}", bench.path("profile").display()))
            .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(scheme == "light")))
            .arg(format!("--screenshot={}", picture.display()))
            .arg(&page);
        let outcome = command.output().unwrap();
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        assert!(outcome.status.success(), "{said}");
        assert!(!said.contains("CONSOLE"), "{said}");
        let pixels = tiny_skia::Pixmap::decode_png(&std::fs::read(picture).unwrap()).unwrap();
        assert_eq!(pixels.width(), 1200);
        pixels
    };
    let (light, dark) = (shot("light"), shot("dark"));
    let corner = |pixels: &tiny_skia::Pixmap| pixels.pixel(3, 3).unwrap().red();
    assert_eq!((corner(&light), corner(&dark)), (255, 0x15), "paper is white and dark");
    // A page that failed to draw is of one colour.
    let paper = light.pixels().iter().filter(|pixel| pixel.red() == 255).count();
    let share = paper as f64 / light.pixels().len() as f64;
    assert!((0.4..0.97).contains(&share), "{share} of the page is empty");
}

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
