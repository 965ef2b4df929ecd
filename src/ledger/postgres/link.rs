//! One connection: made only to a server that keeps its promises, and given up as soon as it does not answer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all, poll_fn};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio_postgres::error::{Severity, SqlState};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres::{
    AsyncMessage, Client, Connection, NoTls, SimpleQueryMessage, SimpleQueryRow, Socket, Statement,
};

use super::address::Address;
use super::{PostgresFault, said};
use crate::limits;

/// What stands in the places of a statement.
pub(super) type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

/// A connection that is ready for use.
pub(super) struct Link {
    client: Client,
    heard: Arc<Heard>,
    /// Statements that were prepared on it, by their text.
    prepared: Vec<(&'static str, Statement)>,
}

/// What a server says unasked.
#[derive(Default)]
struct Heard {
    warnings: AtomicU64,
    /// The newest entry that a notification spoke of.
    told: AtomicU64,
    /// Rung by a notification, and when the connection ends.
    bell: Notify,
}

/// A row of an answer.
pub(super) struct Row(tokio_postgres::Row);

impl Row {
    /// A column; a fault if it is not of the kind that our tables have there.
    pub(super) fn get<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, PostgresFault> {
        self.0.try_get(column).map_err(|error| PostgresFault::Server(said(&error)))
    }

    /// A column that counts.
    pub(super) fn count(&self, column: usize) -> Result<u64, PostgresFault> {
        let count: i64 = self.get(column)?;
        u64::try_from(count)
            .map_err(|_| PostgresFault::Server("a number in the answer is negative".to_owned()))
    }
}

/// How a commit ended.
pub(super) enum Committed {
    Yes,
    /// The answer was lost, or came with a warning.
    Unknown(String),
}

impl Link {
    pub(super) async fn make(address: &Address) -> Result<Self, PostgresFault> {
        let heard = Arc::new(Heard::default());
        let within = Duration::from_millis(limits::PG_CONNECT_MS * 2);
        let client = tokio::time::timeout(within, connect(address, &heard)).await;
        let client = client
            .map_err(|_| PostgresFault::Unreachable("the connection was not made in time".to_owned()))??;
        let mut link = Self { client, heard, prepared: Vec::new() };
        link.settle_in().await?;
        Ok(link)
    }

    /// Asks the server whether an entry would be safe with it, and makes that hold for the session.
    async fn settle_in(&mut self) -> Result<(), PostgresFault> {
        const ASK: &str = "select pg_is_in_recovery(), current_setting('fsync'), \
             current_setting('synchronous_commit'), current_setting('server_encoding')";
        let row = self.the_row(ASK).await?;
        let (standby, fsync): (bool, String) = (row.get(0)?, row.get(1)?);
        let (synchronous_commit, encoding): (String, String) = (row.get(2)?, row.get(3)?);
        let refused = |why: &str| Err(PostgresFault::Refused(why.to_owned()));
        if standby {
            return refused(STANDBY);
        }
        if fsync == "off" {
            return refused(FSYNC_OFF);
        }
        let weakness = match &*synchronous_commit {
            "on" | "remote_apply" => None,
            "off" => Some("before it is on the disk, and a crash would lose it"),
            "local" => Some("before any standby has it, and a failover would lose it"),
            "remote_write" => Some(
                "before it is on a standby's disk, and a failover to one that lost its power would lose it",
            ),
            _ => Some("by a rule that this handoffd does not know"),
        };
        if let Some(when) = weakness {
            return refused(&format!(
                "synchronous_commit is {synchronous_commit}: a decision would be acknowledged {when}; set it to on"
            ));
        }
        if encoding != "UTF8" {
            return refused("its encoding is not UTF8: not every entry could be kept as it is");
        }
        let statement_ms = limits::PG_STATEMENT_MS;
        let idle_ms = limits::PG_IDLE_IN_TRANSACTION_MS;
        // The level is one that the server itself has just named. It is pinned, so that a reload of the server's
        // settings does not take it away from under us.
        self.batch(&format!(
            "set statement_timeout = {statement_ms}; set lock_timeout = {statement_ms}; \
             set idle_in_transaction_session_timeout = {idle_ms}; \
             set default_transaction_isolation = 'read committed'; \
             set synchronous_commit = '{synchronous_commit}'"
        ))
        .await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Ready when a notification came or the connection ended since it was asked last.
    pub(super) async fn bell(&self) {
        self.heard.bell.notified().await;
    }

    /// Statements without parameters and answers.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), PostgresFault> {
        in_time(self.client.batch_execute(sql)).await
    }

    /// Several statements; the texts of the last row that any of them had, and only of one.
    pub(super) async fn text_row(&self, sql: &str) -> Result<Option<Vec<String>>, PostgresFault> {
        Ok(last_row(in_time(self.client.simple_query(sql)).await?))
    }

    /// The entry that was told of last, of those that were since the connection was made; 0 if none was.
    pub(super) fn told(&self) -> u64 {
        self.heard.told.load(Ordering::Acquire)
    }

    async fn prepared(&mut self, sql: &'static str) -> Result<Statement, PostgresFault> {
        if let Some((_, statement)) = self.prepared.iter().find(|(text, _)| *text == sql) {
            return Ok(statement.clone());
        }
        let statement = in_time(self.client.prepare(sql)).await?;
        self.prepared.push((sql, statement.clone()));
        Ok(statement)
    }

    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, PostgresFault> {
        let statement = self.prepared(sql).await?;
        let rows = in_time(self.client.query(&statement, parameters)).await?;
        Ok(rows.into_iter().map(Row).collect())
    }

    /// The first row of an answer.
    pub(super) async fn row(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<Option<Row>, PostgresFault> {
        Ok(self.rows(sql, parameters).await?.into_iter().next())
    }

    /// The row of a question that always has one.
    pub(super) async fn the_row(&mut self, sql: &'static str) -> Result<Row, PostgresFault> {
        let none = || PostgresFault::Server("the answer has no rows".to_owned());
        self.row(sql, &[]).await?.ok_or_else(none)
    }

    /// How many rows a statement changed.
    pub(super) async fn change(
        &mut self,
        sql: &'static str,
        parameters: Parameters<'_>,
    ) -> Result<u64, PostgresFault> {
        let statement = self.prepared(sql).await?;
        in_time(self.client.execute(&statement, parameters)).await
    }

    /// The same for several statements that are sent together, behind others that are none of ours to prepare; the fault of
    /// the first that failed.
    pub(super) async fn changes(
        &mut self,
        first: Option<&str>,
        statements: &[(&'static str, Parameters<'_>)],
    ) -> Result<(Option<Vec<String>>, Vec<u64>), PostgresFault> {
        let mut prepared = Vec::new();
        for (sql, _) in statements {
            prepared.push(self.prepared(sql).await?);
        }
        let first = async {
            match first {
                Some(sql) => self.client.simple_query(sql).await.map(last_row),
                None => Ok(None),
            }
        };
        let all = prepared
            .iter()
            .zip(statements)
            .map(|(one, (_, parameters))| self.client.execute(one, parameters));
        // Each is sent when it is first asked for its answer, so in this order.
        in_time(async {
            let (first, rest) = join(first, join_all(all)).await;
            Ok((first?, rest.into_iter().collect::<Result<_, _>>()?))
        })
        .await
    }

    /// Commits. Whatever is not a plain yes is unknown: the server may have committed before it failed to say so, and
    /// a wait for a standby that was cancelled ends in a warning.
    pub(super) async fn commit(&self) -> Committed {
        let warnings = self.heard.warnings.load(Ordering::Acquire);
        let within = Duration::from_millis(limits::PG_COMMIT_MS);
        match tokio::time::timeout(within, self.client.batch_execute("commit")).await {
            Ok(Ok(())) if self.heard.warnings.load(Ordering::Acquire) == warnings => Committed::Yes,
            Ok(Ok(())) => Committed::Unknown("the server committed with a warning".to_owned()),
            Ok(Err(error)) => Committed::Unknown(said(&error)),
            Err(_) => Committed::Unknown("the server did not answer in time".to_owned()),
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}

const STANDBY: &str =
    "it is a standby or takes no writes, and may be behind: give the address of the primary";

/// Said when a connection is made, and asked again while it is used, for `fsync` can be changed beneath it.
pub(super) const FSYNC_OFF: &str = "fsync is off: a power cut would lose decisions that were acknowledged, and may damage the database; set it to on";

fn last_row(messages: Vec<SimpleQueryMessage>) -> Option<Vec<String>> {
    let mut last = None;
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => last = Some(row),
            SimpleQueryMessage::RowDescription(_) => last = None,
            _ => {}
        }
    }
    let texts = |row: SimpleQueryRow| {
        (0..row.len()).map(|column| row.get(column).unwrap_or_default().to_owned()).collect()
    };
    last.map(texts)
}

/// Waits for an answer, but not for ever.
async fn in_time<T>(
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PostgresFault> {
    match tokio::time::timeout(Duration::from_millis(limits::PG_ANSWER_MS), answer).await {
        Ok(answer) => answer.map_err(|error| fault(&error)),
        Err(_) => Err(PostgresFault::Unreachable("the server did not answer in time".to_owned())),
    }
}

fn fault(error: &tokio_postgres::Error) -> PostgresFault {
    match error.as_db_error() {
        Some(told) if *told.code() == SqlState::UNIQUE_VIOLATION => PostgresFault::Taken,
        // The server ended the session: as if it could not be reached.
        Some(told) if told.parsed_severity() == Some(Severity::Fatal) => {
            PostgresFault::Unreachable(said(error))
        }
        Some(_) => PostgresFault::Server(said(error)),
        None => PostgresFault::Unreachable(said(error)),
    }
}

async fn connect(address: &Address, heard: &Arc<Heard>) -> Result<Client, PostgresFault> {
    let unreachable = |error: tokio_postgres::Error| {
        // What the driver says of a server that only reads.
        let cause =
            std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        match cause {
            Some(io) if io.kind() == std::io::ErrorKind::PermissionDenied => {
                PostgresFault::Refused(STANDBY.to_owned())
            }
            _ => PostgresFault::Unreachable(said(&error)),
        }
    };
    Ok(match address.tls.clone() {
        Some(tls) => {
            let (client, connection) = address.config.connect(tls).await.map_err(unreachable)?;
            tokio::spawn(listen(connection, heard.clone()));
            client
        }
        None => {
            let (client, connection) = address.config.connect(NoTls).await.map_err(unreachable)?;
            tokio::spawn(listen(connection, heard.clone()));
            client
        }
    })
}

/// Drives a connection to its end. Messages are taken in the order in which the server sent them, so a warning is
/// counted before the answer that it came with is handed on.
async fn listen<S>(mut connection: Connection<Socket, S>, heard: Arc<Heard>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match poll_fn(|context| connection.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                // By severity, not by text: the text is in the server's language.
                if !matches!(
                    notice.parsed_severity(),
                    Some(Severity::Notice | Severity::Info | Severity::Log | Severity::Debug)
                ) {
                    heard.warnings.fetch_add(1, Ordering::AcqRel);
                }
            }
            Some(Ok(AsyncMessage::Notification(told))) => {
                let sequence = told.payload().split(' ').next().and_then(|text| text.parse().ok());
                heard.told.fetch_max(sequence.unwrap_or(u64::MAX), Ordering::AcqRel);
                heard.bell.notify_one();
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    heard.bell.notify_one();
}
