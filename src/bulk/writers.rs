//! Writers: write blocks of entries to SST files in parallel, in bounded memory.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::store::{SstBlock, SstFile, SstOptions};

/// How the entries of a family are distributed over files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Bytes of entries passed to a writing thread in one block.
    pub(super) block_bytes: usize,
    /// Blocks per file. Files of one block are written in parallel, others one after another.
    pub(super) blocks_per_file: usize,
}

/// Collects the entries of one family and passes full blocks to the writing threads.
pub(super) struct Writers {
    block: SstBlock,
    block_bytes: usize,
    number: usize,
    full: SyncSender<(usize, SstBlock)>,
    spare: Receiver<SstBlock>,
}

impl Writers {
    /// Appends an entry; keys must ascend.
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
        // The channel closes only after a writer failed; `write` returns that error.
        self.full.send((number, block)).map_err(|_| Error::Cancelled)
    }
}

/// Runs `produce` next to writing threads and returns the files in key order.
///
/// # Errors
///
/// The first error of a writer, otherwise that of `produce`.
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
    let (recycle, spare) = sync_channel::<SstBlock>(threads + 2);
    let blocks = Arc::new(Mutex::new(blocks));
    let name = |file: usize| directory.join(format!("{stem}-{file:05}.sst"));
    let work = |blocks: &Mutex<Receiver<(usize, SstBlock)>>, recycle: &SyncSender<SstBlock>| {
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
            // If the pool is full, the block is freed.
            let _ = recycle.try_send(block);
        }
        open.map_or(Ok(()), SstFile::finish)
    };
    let mut handed = 0;
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                // Only workers own the receiver, so if all fail, the channel closes and the
                // producer does not block.
                let (blocks, recycle) = (Arc::clone(&blocks), recycle.clone());
                scope.spawn(move || -> Result<()> { work(&blocks, &recycle) })
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
