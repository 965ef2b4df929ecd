//! Push configs that gateways share: a row for each, and who tells it.
//!
//! Whoever tells is a teller for some seconds, and says so again every second. A config whose holder is no teller any more
//! is free, and is taken by whoever finds it first. What is in a document is for others to say.

use std::time::Duration;

use zeroize::Zeroizing;

use super::link::{Committed, Link, Row};
use super::{Database, PostgresFault, stored};
use crate::ledger::chain::Head;
use crate::limits;

/// A config as it is kept.
#[derive(Debug, Clone)]
pub struct PushRow {
    pub push_id: String,
    pub task_id: String,
    pub owner: String,
    /// One of its task's and its owner's.
    pub config_id: String,
    pub document: Zeroizing<String>,
    pub progress: PushProgress,
    pub is_open: bool,
}

/// How far telling has come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushProgress {
    pub delivered: u64,
    pub attempts: u64,
    /// Why the last try failed; nothing if it did not.
    pub retrying: Option<String>,
}

/// Who tells.
#[derive(Debug, Clone)]
pub struct PushTeller {
    /// Another one after every start.
    pub holder: String,
    /// The gateway's key.
    pub gateway: String,
    /// How long it tells without being heard of.
    pub lease: Duration,
}

/// What became of a config that was to be set.
#[derive(Debug)]
pub enum PushSet {
    /// It is kept, and told from behind `delivered` on.
    Kept { replaced: Option<PushRow>, delivered: u64 },
    /// There are as many as there may be, of its task, its owner, or all.
    Full(&'static str),
}

/// May a config be told by whoever asks?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushTurn {
    /// For as long as was asked for, at least.
    Yes,
    /// It is its own, but for how long is not sure just now.
    Later,
    /// It was deleted, has ended, or is another's.
    No,
}

const LOOK: &str = "select exists (select from handoffd_push where ended_at is null)";
const RETIRE: &str = "delete from handoffd_tellers where gateway = $1 and holder <> $2";
const LET_GO: &str = "delete from handoffd_tellers where holder = $1";
const RENEW: &str = "insert into handoffd_tellers (holder, gateway, until) \
     values ($1, $2, clock_timestamp() + make_interval(secs => $3)) \
     on conflict (holder) do update set until = excluded.until";
// A teller that is just saying that it still is one is not waited for: it still is.
const RETIRE_OTHERS: &str = "delete from handoffd_tellers where holder in \
     (select holder from handoffd_tellers where until < clock_timestamp() for update skip locked)";
const TAKE: &str = "update handoffd_push set holder = $1 where push_id in (select push_id from handoffd_push p \
     where ended_at is null and not exists (select from handoffd_tellers t where t.holder = p.holder) \
     order by number limit $2 for update skip locked)";
const KEEP: &str = "update handoffd_push p set delivered = t.delivered, attempts = t.attempts, retrying = t.retrying \
     from unnest($2::text[], $3::bigint[], $4::bigint[], $5::text[]) as t (push_id, delivered, attempts, retrying) \
     where p.push_id = t.push_id and p.holder = $1 and p.ended_at is null";
const HELD: &str = "select push_id from handoffd_push where holder = $1 and ended_at is null";
const OF_IDS: &str = "select push_id, task_id, owner, config_id, document, delivered, attempts, retrying, \
     ended_at is null from handoffd_push where push_id = any($1) and holder = $2 and ended_at is null \
     order by number";
const OF_OWNER: &str = "select push_id, task_id, owner, config_id, document, delivered, attempts, retrying, \
     ended_at is null from handoffd_push where task_id = $1 and owner = $2 order by number";
const TURN: &str = "select coalesce(t.until > clock_timestamp() + make_interval(secs => $3), false) \
     from handoffd_push p left join handoffd_tellers t on t.holder = p.holder \
     where p.push_id = $1 and p.holder = $2 and p.ended_at is null";
const REMOVE: &str = "delete from handoffd_push where task_id = $1 and owner = $2 and config_id = $3 \
     returning push_id, task_id, owner, config_id, document, delivered, attempts, retrying, ended_at is null";
const COUNT: &str = "select count(*) filter (where task_id = $1), \
     count(*) filter (where owner = $2 and ended_at is null), \
     count(*) filter (where ended_at is null), count(*) from handoffd_push";
const MAKE_ROOM: &str = "delete from handoffd_push where push_id in (select push_id from handoffd_push \
     where ended_at is not null order by ended_at limit 1 for update skip locked)";
const ADD: &str = "insert into handoffd_push \
     (push_id, task_id, owner, config_id, document, delivered, attempts, retrying, ended_at, holder) \
     values ($1, $2, $3, $4, $5, $6, $7, $8, case when $9 then null else clock_timestamp() end, $10) \
     on conflict do nothing";
// Once more is as good as once: the answer to the first may have been lost.
const END: &str = "update handoffd_push set document = $3, delivered = $4, attempts = $5, retrying = null, \
     ended_at = coalesce(ended_at, clock_timestamp()) \
     where push_id = $1 and holder = $2 and (ended_at is null or document = $3)";
const FORGET: &str = "delete from handoffd_push where push_id in (select push_id from handoffd_push \
     where ended_at < clock_timestamp() - make_interval(secs => $1) for update skip locked)";

impl Database {
    /// Gives up what a process before this one held under the same key.
    pub fn begin_telling(&self, teller: &PushTeller) -> Result<(), PostgresFault> {
        self.ask(async |link| link.change(RETIRE, &[&teller.gateway, &teller.holder]).await)?;
        Ok(())
    }

    /// Gives up what this process holds; others take it at once.
    pub fn end_telling(&self, teller: &PushTeller) -> Result<(), PostgresFault> {
        self.ask(async |link| link.change(LET_GO, &[&teller.holder]).await)?;
        Ok(())
    }

    /// Keeps a config in the place of the one of its name, and holds it.
    pub fn set_push(&self, row: &PushRow, teller: &PushTeller) -> Result<PushSet, PostgresFault> {
        self.wait(async {
            // A new connection: one that lay idle may have broken, and this is not done twice.
            let mut link = Link::make(&self.0.address).await?;
            let set = set(&mut link, self.topic_id(), row, teller).await?;
            self.give_back(link);
            Ok(set)
        })
    }

    /// Keeps a config that came from elsewhere, unless there is one of its name; whoever is free takes it.
    pub fn add_push(&self, row: &PushRow) -> Result<(), PostgresFault> {
        self.ask(async |link| add(link, row, row.progress.delivered, None).await)?;
        Ok(())
    }

    /// Removes a config, and says what it was.
    pub fn remove_push(
        &self,
        task_id: &str,
        owner: &str,
        config_id: &str,
    ) -> Result<Option<PushRow>, PostgresFault> {
        self.wait(async {
            let mut link = Link::make(&self.0.address).await?;
            let row = link.row(REMOVE, &[&task_id, &owner, &config_id]).await?;
            self.give_back(link);
            row.as_ref().map(read).transpose()
        })
    }

    /// An owner's configs of a task, in the order in which they were set.
    pub fn push_of(&self, task_id: &str, owner: &str) -> Result<Vec<PushRow>, PostgresFault> {
        self.ask(async |link| {
            let rows = link.rows(OF_OWNER, &[&task_id, &owner]).await?;
            rows.iter().map(read).collect()
        })
    }

    /// Writes down how far telling has come, says that it goes on, and takes what nobody tells. Returns the ids of what it
    /// holds now.
    pub fn hold_push(
        &self,
        teller: &PushTeller,
        told: &[(String, PushProgress)],
    ) -> Result<Vec<String>, PostgresFault> {
        self.ask(async |link| {
            if told.is_empty() && !link.the_row(LOOK).await?.get::<bool>(0)? {
                return Ok(Vec::new());
            }
            hold(link, teller, told).await
        })
    }

    /// Those of these configs that it holds.
    pub fn held_push(&self, teller: &PushTeller, ids: &[String]) -> Result<Vec<PushRow>, PostgresFault> {
        self.ask(async |link| {
            let rows = link.rows(OF_IDS, &[&ids, &teller.holder]).await?;
            rows.iter().map(read).collect()
        })
    }

    /// May it tell a config, and be sure for so long that nobody else does?
    pub fn push_turn(
        &self,
        teller: &PushTeller,
        push_id: &str,
        sure_for: Duration,
    ) -> Result<PushTurn, PostgresFault> {
        let sure_s = sure_for.as_secs_f64();
        self.ask(async |link| {
            let row = link.row(TURN, &[&push_id, &teller.holder, &sure_s]).await?;
            Ok(match row.map(|row| row.get::<bool>(0)).transpose()? {
                Some(true) => PushTurn::Yes,
                Some(false) => PushTurn::Later,
                None => PushTurn::No,
            })
        })
    }

    /// Nothing more is told to a config; false if it was not this one's to end.
    pub fn end_push(&self, teller: &PushTeller, row: &PushRow) -> Result<bool, PostgresFault> {
        let (delivered, attempts) = (stored(row.progress.delivered), stored(row.progress.attempts));
        let changed = self.ask(async |link| {
            link.change(END, &[&row.push_id, &teller.holder, &row.document.as_str(), &delivered, &attempts])
                .await
        })?;
        Ok(changed == 1)
    }

    /// Drops what ended so long ago.
    pub fn forget_push(&self, ended_for: Duration) -> Result<(), PostgresFault> {
        self.ask(async |link| link.change(FORGET, &[&ended_for.as_secs_f64()]).await)?;
        Ok(())
    }
}

async fn renew(link: &mut Link, teller: &PushTeller) -> Result<(), PostgresFault> {
    link.change(RENEW, &[&teller.holder, &teller.gateway, &teller.lease.as_secs_f64()]).await?;
    Ok(())
}

async fn hold(
    link: &mut Link,
    teller: &PushTeller,
    told: &[(String, PushProgress)],
) -> Result<Vec<String>, PostgresFault> {
    let holder = &teller.holder;
    link.batch("begin").await?;
    // In this order: who has renewed is not retired by others until this is over, and who was retired meanwhile sees what
    // they took.
    renew(link, teller).await?;
    link.change(RETIRE_OTHERS, &[]).await?;
    if !told.is_empty() {
        let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
        let delivered: Vec<i64> = told.iter().map(|(_, one)| stored(one.delivered)).collect();
        let attempts: Vec<i64> = told.iter().map(|(_, one)| stored(one.attempts)).collect();
        let retrying: Vec<Option<&str>> = told.iter().map(|(_, one)| one.retrying.as_deref()).collect();
        link.change(KEEP, &[holder, &ids, &delivered, &attempts, &retrying]).await?;
    }
    link.change(TAKE, &[holder, &(limits::PUSH_TAKEN_AT_ONCE_MAX as i64)]).await?;
    let rows = link.rows(HELD, &[holder]).await?;
    let held = rows.iter().map(|row| row.get(0)).collect::<Result<_, _>>()?;
    commit(link).await?;
    Ok(held)
}

async fn set(
    link: &mut Link,
    topic_id: &str,
    row: &PushRow,
    teller: &PushTeller,
) -> Result<PushSet, PostgresFault> {
    link.batch(&format!("begin; select pg_advisory_xact_lock({})", lock_key(topic_id))).await?;
    renew(link, teller).await?;
    let replaced = link.row(REMOVE, &[&row.task_id, &row.owner, &row.config_id]).await?;
    let replaced = replaced.as_ref().map(read).transpose()?;
    let mut delivered = row.progress.delivered;
    match &replaced {
        Some(known) => delivered = delivered.min(known.progress.delivered),
        None => {
            if let Some(whose) = full(link, row).await? {
                link.batch("rollback").await?;
                return Ok(PushSet::Full(whose));
            }
        }
    }
    if add(link, row, delivered, Some(&teller.holder)).await? == 0 {
        return Err(PostgresFault::Taken);
    }
    commit(link).await?;
    Ok(PushSet::Kept { replaced, delivered })
}

/// Whose configs are too many. What ended first gives way.
async fn full(link: &mut Link, row: &PushRow) -> Result<Option<&'static str>, PostgresFault> {
    let counted = link.row(COUNT, &[&row.task_id, &row.owner]).await?;
    let Some(counted) = counted else { return Ok(None) };
    let at_least = |column, most: usize| Ok::<_, PostgresFault>(counted.count(column)? >= most as u64);
    if at_least(0, limits::PUSH_CONFIGS_OF_TASK_MAX)? {
        return Ok(Some("this task"));
    }
    if at_least(1, limits::PUSH_CONFIGS_OF_OWNER_MAX)? {
        return Ok(Some("this caller"));
    }
    if at_least(2, limits::PUSH_CONFIGS_MAX)? {
        return Ok(Some("this gateway"));
    }
    if at_least(3, limits::PUSH_CONFIGS_MAX)? {
        link.change(MAKE_ROOM, &[]).await?;
    }
    Ok(None)
}

async fn add(
    link: &mut Link,
    row: &PushRow,
    delivered: u64,
    holder: Option<&str>,
) -> Result<u64, PostgresFault> {
    let PushRow { push_id, task_id, owner, config_id, document, progress, is_open } = row;
    let (delivered, attempts) = (stored(delivered), stored(progress.attempts));
    let document = document.as_str();
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 10] = [
        push_id,
        task_id,
        owner,
        config_id,
        &document,
        &delivered,
        &attempts,
        &progress.retrying,
        is_open,
        &holder,
    ];
    link.change(ADD, &values).await
}

async fn commit(link: &Link) -> Result<(), PostgresFault> {
    link.batch("set local statement_timeout = 0").await?;
    match link.commit().await {
        Committed::Yes => Ok(()),
        Committed::Unknown(why) => Err(PostgresFault::Unreachable(why)),
    }
}

/// One config is set at a time, so that limits hold; another number than that of the turns to append.
fn lock_key(topic_id: &str) -> i64 {
    let hash = Head::genesis(topic_id).running_hash;
    hash.as_bytes().last_chunk::<8>().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

fn read(row: &Row) -> Result<PushRow, PostgresFault> {
    Ok(PushRow {
        push_id: row.get(0)?,
        task_id: row.get(1)?,
        owner: row.get(2)?,
        config_id: row.get(3)?,
        document: Zeroizing::new(row.get(4)?),
        progress: PushProgress { delivered: row.count(5)?, attempts: row.count(6)?, retrying: row.get(7)? },
        is_open: row.get(8)?,
    })
}
