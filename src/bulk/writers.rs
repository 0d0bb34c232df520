//! Writers: blocks of entries become SST files, on every core, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::store::{SstBlock, SstFile, SstOptions};

/// How the entries of a family are spread over files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Bytes of entries that are handed to a writing thread at a time.
    pub(super) block_bytes: usize,
    /// Blocks in one file; files of one block are written in parallel, others one by one.
    pub(super) blocks_per_file: usize,
}

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
    layout: Layout,
    produce: impl FnOnce(&mut Writers) -> Result<()>,
) -> Result<Vec<PathBuf>> {
    let in_parallel = layout.blocks_per_file == 1;
    let threads = if in_parallel { rayon::current_num_threads().clamp(1, 8) } else { 1 };
    let (full, blocks) = sync_channel::<(usize, SstBlock)>(1);
    let (give_back, spare) = sync_channel::<SstBlock>(threads + 2);
    let blocks = Arc::new(Mutex::new(blocks));
    let name = |file: usize| directory.join(format!("{stem}-{file:05}.sst"));
    let work = |blocks: &Mutex<Receiver<(usize, SstBlock)>>, give_back: &SyncSender<SstBlock>| {
        let mut open: Option<SstFile<'_>> = None;
        loop {
            let next = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok((number, block)) = next else { break };
            if number % layout.blocks_per_file == 0
                && let Some(full) = open.take()
            {
                full.finish()?;
            }
            let mut file = match open.take() {
                Some(file) => file,
                None => options.create(&name(number / layout.blocks_per_file))?,
            };
            file.append(&block)?;
            open = Some(file);
            // A full pool only means that the block is freed.
            let _ = give_back.try_send(block);
        }
        open.map_or(Ok(()), SstFile::finish)
    };
    let mut handed = 0;
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                // The channel closes with its last worker, so a failed one cannot leave the
                // producer waiting.
                let (blocks, give_back) = (Arc::clone(&blocks), give_back.clone());
                scope.spawn(move || -> Result<()> { work(&blocks, &give_back) })
            })
            .collect();
        drop(blocks);
        let mut writers = Writers {
            block: SstBlock::default(),
            block_bytes: layout.block_bytes,
            number: 0,
            full,
            spare,
        };
        let mut produced = produce(&mut writers);
        if produced.is_ok() && !writers.block.is_empty() {
            produced = writers.hand_over();
        }
        handed = writers.number;
        drop(writers);
        let mut written = Ok(());
        for worker in workers {
            let ended = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            written = written.and(ended);
        }
        written.and(produced)
    });
    outcome.map(|()| (0..handed.div_ceil(layout.blocks_per_file)).map(name).collect())
}
