//! A secondary next to a writer in another process, which is killed and restarted.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use hamdex::{Durability, Index, IndexOptions, Query, Result, SearchPath, Secondary};

use crate::support::{Model, Rng, assert_holds, documents_of, options, scan};

const DIRECTORY: &str = "HAMDEX_SECONDARY_DIRECTORY";
const FROM: &str = "HAMDEX_SECONDARY_FROM";

/// Most calls that the writer may be ahead of those read by the other process.
const AHEAD: u64 = 12;

type Document = (Vec<u8>, u64);

fn key(number: u64, at: u64) -> Vec<u8> {
    format!("{number:06}-{at:02}").into_bytes()
}

/// The documents that a call stores, and the keys that it removes; each changes all families.
fn apply(model: &mut Model<u64>, number: u64) -> (Vec<Document>, Vec<Vec<u8>>) {
    let mut rng = Rng::new(number);
    let (documents, gone) = if number % 3 == 2 {
        (Vec::new(), (0..30).step_by(2).map(|at| key(number - 1, at)).collect())
    } else {
        let owner = |at| if at < 4 { number.saturating_sub(3) } else { number };
        ((0..30).map(|at| (key(owner(at), at), rng.number() & !0xff)).collect(), Vec::new())
    };
    model.extend(documents.iter().cloned());
    model.retain(|key, _| !gone.contains(key));
    (documents, gone)
}

#[test]
#[ignore = "the child that the other test starts and kills"]
fn child() -> Result<()> {
    let Ok(directory) = std::env::var(DIRECTORY) else { return Ok(()) };
    let index = Index::<u64>::open_with(&directory, &IndexOptions::new().memory(16 << 20))?;
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    for number in from.. {
        if number >= from + AHEAD {
            std::io::stdin().read_exact(&mut [0]).unwrap();
        }
        let (documents, gone) = apply(&mut Model::new(), number);
        if gone.is_empty() {
            index.insert_batch(&documents, Durability::Buffered)?;
        } else {
            index.remove_batch(&gone, Durability::Buffered)?;
        }
        match number % 40 {
            13 => index.flush()?,
            26 => drop(index.merge(&())?),
            39 => drop(index.compact()?),
            _ => (),
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nacknowledged {number}").unwrap();
        out.flush().unwrap();
    }
    Ok(())
}

fn start(directory: &Path, from: u64) -> (Child, std::io::Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "secondary::child", "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env(FROM, from.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn told(line: &str) -> Option<u64> {
    line.strip_prefix("acknowledged ")?.parse().ok()
}

/// Applies calls to the model until it equals `held`, which no partial call may explain.
fn advance(model: &mut Model<u64>, held: &Model<u64>, from: u64, most: u64) -> u64 {
    for number in from..most {
        if model == held {
            return number;
        }
        apply(model, number);
    }
    assert!(model == held, "no number of whole calls from {from} to {most} gives this state");
    most
}

#[test]
fn a_secondary_shows_only_whole_calls_of_another_process() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("index");
    drop(Index::<u64>::create(&path, &options::<u64>("4"))?);
    let secondary = Secondary::<u64>::open_with(&path, &IndexOptions::new().memory(16 << 20))?;
    let (mut shown, mut model) = (0, Model::new());
    let (mut acknowledged, mut states) = (0, 0);
    for round in 0..4 {
        let (mut child, mut lines) = start(&path, acknowledged);
        let mut leave = child.stdin.take().unwrap();
        let goal = acknowledged + 60 + 7 * round;
        while acknowledged < goal {
            let line = lines.next().expect("the child writes until it is killed").unwrap();
            let Some(number) = told(&line) else { continue };
            acknowledged = u64::max(acknowledged, number + 1);
            leave.write_all(&[0]).unwrap();
            if number % 5 != 0 {
                continue;
            }
            secondary.catch_up()?;
            let index = secondary.index();
            let held = documents_of(&index)?;
            let context = format!("round {round}, {acknowledged} acknowledged");
            shown = advance(&mut model, &held, shown, acknowledged + AHEAD + 1);
            assert!(shown >= acknowledged, "{context}: only {shown} are shown");
            // Tables and postings are in the same state as the documents.
            assert_holds(&index, &held, &context);
            for query in held.values().step_by(41).map(|fingerprint| fingerprint ^ 0x21) {
                let query_of = Query::new(query).distance(4).path(SearchPath::Tables);
                assert_eq!(index.search(query_of)?, scan(&held, query, 4), "{context}");
            }
            states += 1;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(std::result::Result::ok) {
            acknowledged = told(&line).map_or(acknowledged, |number| number + 1);
        }
        secondary.catch_up()?;
        let held = documents_of(&secondary.index())?;
        shown = advance(&mut model, &held, shown, acknowledged + 1);
        assert!(shown >= acknowledged, "killed, round {round}");
        // The call in flight was written, or the next child repeats it.
        acknowledged = shown;
        assert_holds(&secondary.index(), &model, "after the kill");
    }
    assert!(states > 30, "only {states} states were checked");
    Ok(())
}
