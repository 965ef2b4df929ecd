//! The statement behind a page: one filter drives an index, the others are asked of each row it yields.
//!
//! SQLite could choose the index itself, but only by statistics that go stale; here the order of the filters says
//! which one is the most telling, and a test reads the plan of every statement that can be made.

use std::fmt::Write as _;

/// What a list is over. Each table is in order of its key, and so is every index.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) table: &'static str,
    pub(super) key: &'static str,
}

/// How a filter is asked.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// A column of the row, with an index.
    Column(&'static str),
    /// A column of the row, never the one that drives.
    Only(&'static str),
    /// A row in another table: its name, and its column. Its other column is the key.
    Member(&'static str, &'static str),
    /// A run of keys in `runs` that holds the row's.
    Run,
}

/// Columns of the row that a table of members has too: those are asked there, and the row itself is not read.
const CARRIED: [(&str, &str); 2] = [("entry_codes", "kind"), ("entry_codes", "decision")];

/// Filters and the numbers they ask for, the most telling first.
pub(super) type Wanted = Vec<(By, i64)>;

impl List {
    /// Keys from the newest to the oldest. Parameters: the lowest and the highest key, the number of rows, and
    /// then one for each filter.
    pub(super) fn statement(self, wanted: &[(By, i64)]) -> String {
        let Self { table, key } = self;
        let driver = wanted.iter().map(|(by, _)| *by).next();
        let carried =
            |column: &str| matches!(driver, Some(By::Member(other, _)) if CARRIED.contains(&(other, column)));
        let asks_row = wanted.iter().any(|(by, _)| match by {
            By::Column(column) | By::Only(column) => !carried(column),
            By::Member(..) | By::Run => false,
        });
        let mut sql = match driver {
            // CROSS JOIN keeps the order in which the tables are written.
            Some(By::Member(other, _)) if asks_row => format!(
                "SELECT d.{key} FROM {other} d CROSS JOIN {table} t ON t.{key} = d.{key} \
                 WHERE d.{key} BETWEEN ?1 AND ?2"
            ),
            Some(By::Member(other, _)) => {
                format!("SELECT d.{key} FROM {other} d WHERE d.{key} BETWEEN ?1 AND ?2")
            }
            // Runs from the one that holds the lowest key, or else begins after it, to the highest key.
            Some(By::Run) => format!(
                "SELECT t.{key} FROM runs d CROSS JOIN {table} t ON t.{key} BETWEEN max(d.first, ?1) AND min(d.last, ?2) \
                 WHERE d.first BETWEEN \
                 coalesce((SELECT max(m.first) FROM runs m WHERE m.whose = ?4 AND m.first <= ?1), ?1) AND ?2"
            ),
            _ => format!("SELECT t.{key} FROM {table} t WHERE t.{key} BETWEEN ?1 AND ?2"),
        };
        let from = if matches!(driver, Some(By::Member(..))) { "d" } else { "t" };
        for (position, (by, _)) in wanted.iter().enumerate() {
            let parameter = position + 4;
            // The plus sign keeps a condition away from the indexes. Writing to a String cannot fail.
            let _ = match (by, position) {
                (By::Member(_, column), 0) => write!(sql, " AND d.{column} = ?{parameter}"),
                // Not EXISTS, which SQLite may turn into a join that begins at the wrong end.
                (By::Member(other, column), _) => write!(
                    sql,
                    " AND (SELECT 1 FROM {other} m WHERE m.{column} = ?{parameter} AND m.{key} = {from}.{key}) = 1"
                ),
                (By::Run, 0) => write!(sql, " AND d.whose = ?{parameter}"),
                (By::Run, _) => write!(
                    sql,
                    " AND {from}.{key} <= (SELECT m.last FROM runs m WHERE m.whose = ?{parameter} \
                     AND m.first <= {from}.{key} ORDER BY m.first DESC LIMIT 1)"
                ),
                (By::Column(column), 0) => write!(sql, " AND t.{column} = ?{parameter}"),
                (By::Column(column) | By::Only(column), _) if carried(column) => {
                    write!(sql, " AND +d.{column} = ?{parameter}")
                }
                (By::Column(column) | By::Only(column), _) => write!(sql, " AND +t.{column} = ?{parameter}"),
            };
        }
        // Runs of one name do not overlap, so their order is that of the keys in them.
        let order = if matches!(driver, Some(By::Run)) { "d.first DESC, " } else { "" };
        let _ = write!(sql, " ORDER BY {order}{from}.{key} DESC LIMIT ?3");
        sql
    }
}
