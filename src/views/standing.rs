//! What operators ask about handoffs, a few times a day: what is in flight, and what a message led to.

use super::fault::ViewsFault;
use super::reader::Reader;
use super::rows::{HandoffRow, handoff};
use super::status::Status;
use super::words::number_of;

/// Where work is under way, or may begin at any moment.
const IN_FLIGHT: [Status; 4] = [Status::Available, Status::Claimed, Status::Working, Status::Blocked];

/// Driven by the index on the status: few handoffs are open, whatever the number of those that have ended.
pub(super) const OPEN: &str = "FROM handoffs h CROSS JOIN attempts a ON a.created = h.current
    WHERE h.status = ?1 AND (?2 IS NULL OR +h.route = ?2) AND (?3 IS NULL OR a.mode = ?3)";

/// The newest open ones alone, however many there are: for whoever only wants to know about how many.
pub(super) const NEWEST_OPEN: &str =
    "SELECT current, route FROM handoffs WHERE status = ?1 ORDER BY handoff DESC LIMIT ?4";

/// Reads the whole table. An index would cost every mention a write, for a question that is asked by hand.
const OF_MESSAGE: &str = "SELECT h.handoff_id FROM attempts a CROSS JOIN handoffs h ON h.handoff = a.handoff
    WHERE a.message_id = ?1 GROUP BY h.handoff ORDER BY max(a.created) DESC LIMIT ?2";

impl Reader {
    /// Handoffs in flight on a route, in a mode or anywhere: the newest first of each status, at most so many, and
    /// how many there are in all.
    pub fn in_flight(
        &self,
        route: Option<&str>,
        mode: Option<&str>,
        rows_max: usize,
    ) -> Result<(Vec<HandoffRow>, u64), ViewsFault> {
        let moment = self.moment()?;
        let word = |text: Option<&str>| match text {
            None => Ok(Some(None)),
            Some(text) => Ok::<_, ViewsFault>(number_of(&moment, text)?.map(Some)),
        };
        let (mut rows, mut total) = (Vec::new(), 0);
        let (Some(route), Some(mode)) = (word(route)?, word(mode)?) else { return Ok((rows, total)) };
        for status in IN_FLIGHT {
            let Some(status) = number_of(&moment, status.as_str())? else { continue };
            let count = format!("SELECT count(*) {OPEN}");
            let count: i64 =
                moment.prepare_cached(&count)?.query_row((status, route, mode), |row| row.get(0))?;
            total += count.unsigned_abs();
            let room = rows_max.saturating_sub(rows.len());
            let listed = format!("SELECT h.handoff {OPEN} ORDER BY h.handoff DESC LIMIT ?4");
            let mut statement = moment.prepare_cached(&listed)?;
            let mut keys = statement.query((status, route, mode, room as i64))?;
            while let Some(row) = keys.next()? {
                rows.extend(handoff(&moment, row.get(0)?)?);
            }
        }
        Ok((rows, total))
    }

    /// About how many handoffs are in flight there, and whether that is all: of each status, only so many of the newest
    /// are looked at.
    pub fn about_in_flight(
        &self,
        route: Option<&str>,
        mode: Option<&str>,
        looked_at_max: usize,
    ) -> Result<(u64, bool), ViewsFault> {
        let moment = self.moment()?;
        let word = |text: Option<&str>| match text {
            None => Ok(Some(None)),
            Some(text) => Ok::<_, ViewsFault>(number_of(&moment, text)?.map(Some)),
        };
        let (mut total, mut is_all) = (0, true);
        let (Some(route), Some(mode)) = (word(route)?, word(mode)?) else { return Ok((total, is_all)) };
        for status in IN_FLIGHT {
            let Some(status) = number_of(&moment, status.as_str())? else { continue };
            let counting = format!(
                "SELECT count(*), coalesce(sum((?2 IS NULL OR h.route = ?2) AND
                 (?3 IS NULL OR (SELECT mode FROM attempts WHERE created = h.current) = ?3)), 0)
                 FROM ({NEWEST_OPEN}) h"
            );
            let mut statement = moment.prepare_cached(&counting)?;
            let (seen, counted): (u64, u64) = statement
                .query_row((status, route, mode, looked_at_max as i64), |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?;
            total += counted;
            is_all &= seen < looked_at_max as u64;
        }
        Ok((total, is_all))
    }

    /// The handoffs that a message led to, accepted or refused, the newest first.
    pub fn handoffs_of_message(&self, message_id: &str, rows_max: usize) -> Result<Vec<String>, ViewsFault> {
        let moment = self.moment()?;
        let mut statement = moment.prepare_cached(OF_MESSAGE)?;
        let ids = statement.query_map((message_id, rows_max as i64), |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }
}
