//! Reports on a disk, bounded by bytes and age: one redb file.
//!
//! redb and not fjall: a batch of reports is one transaction, durable when it is committed, whatever kills the process
//! then; the file's format is stable; it has no dependencies, no threads and no compaction of its own. fjall would write
//! faster, which a few refusals a second do not need, into several files that are to be merged in the background.
//!
//! Beside each report stands a short head, by which lists are made and found without reading the reports.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use super::head::{Filter, Head, Page};
use super::id::ReportId;
use crate::clock::Clock;
use crate::report::Report;

const REPORTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("reports");
const HEADS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("heads");
/// How many bytes and how many reports there are.
const TOTALS: TableDefinition<'_, &str, u64> = TableDefinition::new("totals");
const BYTES: &str = "bytes";
const COUNT: &str = "reports";
/// The name of the file in the folder.
const FILE: &str = "reports.redb";
/// What is kept of the file in memory.
const CACHE_BYTES: usize = 4 << 20;

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// So many bytes of reports at most; the file takes about twice as much.
    pub bytes_max: u64,
    /// Older ones are dropped.
    pub age_max: Duration,
}

/// Why reports cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has the file.
    #[error("{0} is in use by another process")]
    InUse(PathBuf),
    /// There is no such file.
    #[error("{0} is not there: no reports were kept in this folder")]
    Missing(PathBuf),
    /// The folder cannot be used.
    #[error("{0}: {1}")]
    Folder(PathBuf, io::Error),
    /// The file cannot be read or written.
    #[error("reports cannot be read or written: {0}")]
    File(Box<redb::Error>),
    /// A report is not one.
    #[error("a stored report cannot be read: {0}")]
    Report(#[from] serde_json::Error),
}

/// An error of redb, whatever it is about.
fn failed(error: impl Into<redb::Error>) -> StoreError {
    StoreError::File(Box::new(error.into()))
}

/// What was dropped, and what is kept now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Reports that were dropped to make room, or for their age.
    pub dropped: u64,
    /// Bytes of reports that are kept.
    pub bytes: u64,
    /// How many are kept.
    pub reports: u64,
}

/// Reports on a disk; a clone is the same one.
#[derive(Clone)]
pub struct ReportStore {
    database: Arc<Database>,
}

impl ReportStore {
    /// Opens the store of a folder, or makes it.
    ///
    /// # Errors
    /// When it is in use, or cannot be had.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(|error| StoreError::Folder(folder.to_owned(), error))?;
        Self::opened(folder, |builder, path| builder.create(path))
    }

    /// Opens a store that is there.
    ///
    /// # Errors
    /// When it is in use, not there, or cannot be had.
    pub fn open_existing(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Err(StoreError::Missing(path));
        }
        Self::opened(folder, |builder, path| builder.open(path))
    }

    fn opened(
        folder: &Path,
        open: impl Fn(&redb::Builder, &Path) -> Result<Database, DatabaseError>,
    ) -> Result<Self, StoreError> {
        let path = folder.join(FILE);
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let database = open(&builder, &path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(path.clone()),
            other => failed(other),
        })?;
        let transaction = database.begin_write().map_err(failed)?;
        transaction.open_table(REPORTS).map_err(failed)?;
        transaction.open_table(HEADS).map_err(failed)?;
        transaction.open_table(TOTALS).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Self { database: Arc::new(database) })
    }

    /// Keeps reports, in one transaction that is on the disk when this returns, and drops what is too old or too much.
    ///
    /// # Errors
    /// When the file cannot be written: then none of them is kept.
    pub fn put(&self, batch: &[(ReportId, Report)], bounds: Bounds, now: Clock) -> Result<Kept, StoreError> {
        let transaction = self.database.begin_write().map_err(failed)?;
        let kept = {
            let mut reports = transaction.open_table(REPORTS).map_err(failed)?;
            let mut heads = transaction.open_table(HEADS).map_err(failed)?;
            let mut added = 0;
            for (id, report) in batch {
                let bytes = serde_json::to_vec(report)?;
                let head = Head::of(*id, report, bytes.len());
                added += head.bytes;
                heads.insert(id.0, serde_json::to_vec(&head)?.as_slice()).map_err(failed)?;
                reports.insert(id.0, bytes.as_slice()).map_err(failed)?;
            }
            let mut totals = transaction.open_table(TOTALS).map_err(failed)?;
            let total = |name: &str| Ok::<_, StoreError>(totals.get(name).map_err(failed)?.map_or(0, |n| n.value()));
            let mut kept = Kept { bytes: total(BYTES)?, reports: total(COUNT)?, dropped: 0 };
            kept.bytes += added;
            kept.reports += u64::try_from(batch.len()).unwrap_or(u64::MAX);
            let oldest = ReportId::first_at(now.earlier(bounds.age_max));
            loop {
                let first = heads.first().map_err(failed)?.map(|(id, head)| (id.value(), head.value().to_vec()));
                let Some((id, head)) = first else { break };
                if kept.bytes <= bounds.bytes_max && id >= oldest.0 {
                    break;
                }
                heads.remove(id).map_err(failed)?;
                reports.remove(id).map_err(failed)?;
                kept.bytes = kept.bytes.saturating_sub(serde_json::from_slice::<Head>(&head)?.bytes);
                kept.reports = kept.reports.saturating_sub(1);
                kept.dropped += 1;
            }
            totals.insert(BYTES, kept.bytes).map_err(failed)?;
            totals.insert(COUNT, kept.reports).map_err(failed)?;
            kept
        };
        transaction.commit().map_err(failed)?;
        Ok(kept)
    }

    /// A report; none if it is not kept, or not any more.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn get(&self, id: ReportId) -> Result<Option<Report>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let reports = transaction.open_table(REPORTS).map_err(failed)?;
        let found = reports.get(id.0).map_err(failed)?;
        Ok(found.map(|bytes| serde_json::from_slice(bytes.value())).transpose()?)
    }

    /// The newest id.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn last(&self) -> Result<Option<ReportId>, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let heads = transaction.open_table(HEADS).map_err(failed)?;
        Ok(heads.last().map_err(failed)?.map(|(id, _)| ReportId(id.value())))
    }

    /// The heads that a filter admits, the newest first, and how many there are in all.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self, filter: &Filter, may_see: &dyn Fn(&Head) -> bool) -> Result<Page, StoreError> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let heads = transaction.open_table(HEADS).map_err(failed)?;
        let mut page = Page::default();
        for entry in heads.iter().map_err(failed)?.rev() {
            let (id, head) = entry.map_err(failed)?;
            let head: Head = serde_json::from_slice(head.value())?;
            if filter.admits(&head) && may_see(&head) {
                page.add(ReportId(id.value()), head, filter);
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests;
