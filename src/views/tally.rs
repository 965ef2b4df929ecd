//! Decisions by the minute and codes by the hour: counted while the entries pass by, asked for an overview.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::fault::ViewsFault;
use super::reader::Reader;
use crate::timestamp::Timestamp;

const MINUTE_NS: i64 = 60_000_000_000;
const HOUR_NS: i64 = 60 * MINUTE_NS;

/// What was counted since the last time it was written. The keys are those of the tables.
#[derive(Debug, Default)]
pub(super) struct Tally {
    minutes: BTreeMap<(i64, i64), i64>,
    hours: BTreeMap<(i64, i64), i64>,
}

impl Tally {
    /// A decision at this time, and the codes that it names.
    pub(super) fn decided(&mut self, time: i64, decision: i64, codes: &[i64]) {
        *self.minutes.entry((time.div_euclid(MINUTE_NS), decision)).or_default() += 1;
        for code in codes {
            *self.hours.entry((time.div_euclid(HOUR_NS), *code)).or_default() += 1;
        }
    }

    pub(super) fn save(self, store: &Connection) -> Result<(), ViewsFault> {
        let mut minutes = store.prepare_cached(
            "INSERT INTO decision_minutes (minute, decision, count) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        for ((minute, decision), count) in self.minutes {
            minutes.execute((minute, decision, count))?;
        }
        let mut hours = store.prepare_cached(
            "INSERT INTO code_hours (hour, code, count) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET count = count + excluded.count",
        )?;
        for ((hour, code), count) in self.hours {
            hours.execute((hour, code, count))?;
        }
        Ok(())
    }
}

/// How many decisions of one kind were made in a minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionMinute {
    /// When the minute began.
    pub minute: Timestamp,
    pub decision: String,
    pub count: u64,
}

pub(super) const MINUTES: &str = "SELECT m.minute, w.text, m.count FROM decision_minutes m
    CROSS JOIN words w ON w.id = m.decision WHERE m.minute >= ?1 ORDER BY m.minute, m.decision";

pub(super) const HOURS: &str = "SELECT w.text, s.total FROM
    (SELECT code, sum(count) AS total FROM code_hours WHERE hour >= ?1 GROUP BY code) s
    CROSS JOIN words w ON w.id = s.code ORDER BY s.total DESC, w.text LIMIT ?2";

pub(super) const CHILDREN: &str = "SELECT h.handoff_id FROM attempts a CROSS JOIN handoffs h
    ON h.handoff = a.handoff WHERE a.parent = ?1 GROUP BY h.handoff ORDER BY h.handoff LIMIT ?2";

impl Reader {
    /// Decisions by the minute and by what was decided, from a time on; minutes without any are left out.
    pub fn decisions_since(&self, from: Timestamp) -> Result<Vec<DecisionMinute>, ViewsFault> {
        let moment = self.moment()?;
        let mut statement = moment.prepare_cached(MINUTES)?;
        let rows =
            statement.query_map([from.unix_nanoseconds().unwrap_or(0).div_euclid(MINUTE_NS)], |row| {
                Ok(DecisionMinute {
                    minute: Timestamp::from_unix_nanoseconds(row.get::<_, i64>(0)?.saturating_mul(MINUTE_NS)),
                    decision: row.get(1)?,
                    count: row.get(2)?,
                })
            })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The codes that decisions named most often since a time, to the hour, each with how often.
    pub fn top_codes_since(
        &self,
        from: Timestamp,
        rows_max: usize,
    ) -> Result<Vec<(String, u64)>, ViewsFault> {
        let moment = self.moment()?;
        let mut statement = moment.prepare_cached(HOURS)?;
        let hour = from.unix_nanoseconds().unwrap_or(0).div_euclid(HOUR_NS);
        let rows = statement.query_map((hour, rows_max as i64), |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The handoffs that name this one as their parent, the oldest first.
    pub fn children_of(&self, handoff_id: &str, rows_max: usize) -> Result<Vec<String>, ViewsFault> {
        let moment = self.moment()?;
        let mut statement = moment.prepare_cached(CHILDREN)?;
        let ids = statement.query_map((handoff_id, rows_max as i64), |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}
