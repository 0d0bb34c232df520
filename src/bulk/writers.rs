//! Writers: blocks of entries become SST files, on every core, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::store::{SstBlock, SstOptions};

/// Collects the entries of one family and hands full blocks to the writing threads.
pub(super) struct Writers {
    block: SstBlock,
    block_bytes: usize,
    number: usize,
    full: SyncSender<(usize, SstBlock)>,
    spare: Receiver<SstBlock>,
}

impl Writers {
    /// Appends an entry; keys must rise.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.block.push(key, value);
        if self.block.memory() >= self.block_bytes { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<()> {
        let mut next = self.spare.try_recv().unwrap_or_default();
        next.clear();
        let block = std::mem::replace(&mut self.block, next);
        let number = self.number;
        self.number += 1;
        // Writers stop taking blocks only after one of them has failed, which is told at the end.
        self.full.send((number, block)).map_err(|_| Error::Cancelled)
    }
}

/// Runs `produce` beside writing threads and returns the files in key order.
///
/// # Errors
///
/// The first failure of a writer, else of `produce`.
pub(super) fn write(
    options: &SstOptions,
    directory: &Path,
    stem: &str,
    block_bytes: usize,
    produce: impl FnOnce(&mut Writers) -> Result<()>,
) -> Result<Vec<PathBuf>> {
    let threads = rayon::current_num_threads().clamp(1, 8);
    let (full, blocks) = sync_channel::<(usize, SstBlock)>(1);
    let (give_back, spare) = sync_channel::<SstBlock>(threads + 2);
    let blocks = Mutex::new(blocks);
    let name = |number: usize| directory.join(format!("{stem}-{number:05}.sst"));
    let mut files = 0;
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (blocks, give_back) = (&blocks, give_back.clone());
                scope.spawn(move || -> Result<()> {
                    loop {
                        let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                        let Ok((number, block)) = next else { return Ok(()) };
                        options.write(&name(number), &block)?;
                        // A full pool only means that the block is freed.
                        let _ = give_back.try_send(block);
                    }
                })
            })
            .collect();
        let mut writers =
            Writers { block: SstBlock::default(), block_bytes, number: 0, full, spare };
        let mut produced = produce(&mut writers);
        if produced.is_ok() && !writers.block.is_empty() {
            produced = writers.hand_over();
        }
        files = writers.number;
        drop(writers);
        let mut written = Ok(());
        for worker in workers {
            let ended = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written = written.and(ended);
        }
        written.and(produced)
    });
    outcome.map(|()| (0..files).map(name).collect())
}
