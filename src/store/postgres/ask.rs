//! Statements on connections of the pool, each within a time.

use super::connect::{SqlError, connection};
use super::session::{ANSWER_TIME, SessionShared};
use super::statements::NOW;
use crate::in_words;
use deadpool_postgres::{Object, Pool};
use scopeguard::{ScopeGuard, guard};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// How often something is asked that may be asked again.
pub(super) const ASK_TRIES: u32 = 3;
/// The pause before a read is asked again.
pub(super) const READ_PAUSE: Duration = Duration::from_millis(100);

/// What is passed to a statement.
pub(super) type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Asks, and a few times again after a pause where a connection breaks off.
pub(super) async fn retried<T, F>(
    pause: Duration,
    mut ask: impl FnMut() -> F,
) -> Result<T, SqlError>
where
    F: Future<Output = Result<T, SqlError>>,
{
    for _ in 1..ASK_TRIES {
        match ask().await {
            Err(error) if error.is_passing() => sleep(pause).await,
            answered => return answered,
        }
    }
    ask().await
}

/// Connections of a gateway to its database.
pub(super) struct DatabasePool(pub(super) Pool);

impl DatabasePool {
    /// Closes those that nobody uses: they may lead to a machine that hangs.
    pub(super) fn close_idle(&self) {
        drop(self.0.retain(|_, _| false));
    }

    /// Does something once on a connection, both within a time. One on which it fails is closed: what it had begun is
    /// rolled back.
    pub(super) async fn on_connection<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&Object) -> Result<T, SqlError>,
    ) -> Result<T, SqlError> {
        let until = Instant::now() + limit;
        let connecting = timeout_at(until, connection(&self.0)).await;
        let client = connecting.unwrap_or(Err(SqlError::Late))?;
        // Unless it is given back it is closed: also where nobody waits any more for what was asked on it.
        let client = guard(client, |client| drop(Object::take(client)));
        let done = timeout_at(until, work(&client)).await.unwrap_or(Err(SqlError::Late));
        match &done {
            Ok(_) => drop(ScopeGuard::into_inner(client)),
            // The others may lead to the same machine.
            Err(SqlError::Late) => self.close_idle(),
            Err(_) => {}
        }
        done
    }

    /// Asks once for rows.
    async fn ask(&self, text: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, SqlError> {
        let asking = async |client: &Object| {
            let statement = client.prepare_cached(text).await?;
            Ok(client.query(&statement, parameters).await?)
        };
        self.on_connection(ANSWER_TIME, asking).await
    }

    /// Asks for rows; a few times where a connection breaks off.
    pub(super) async fn rows(
        &self,
        text: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, SqlError> {
        retried(READ_PAUSE, || self.ask(text, parameters)).await
    }

    /// The time by the database's clock, in milliseconds, and where it sees this process.
    pub(super) async fn now(&self) -> Result<(i64, String), SqlError> {
        let row = self.row(NOW, &[]).await?;
        Ok((get(&row, 0)?, get(&row, 1)?))
    }

    /// Asks for the row that there is.
    pub(super) async fn row(
        &self,
        text: &str,
        parameters: Parameters<'_>,
    ) -> Result<Row, SqlError> {
        let rows = self.rows(text, parameters).await?;
        let missing = || SqlError::Refused("it has no row where there is one".to_owned());
        rows.into_iter().next().ok_or_else(missing)
    }

    /// Executes a statement once; how many rows it met.
    pub(super) async fn execute(
        &self,
        text: &str,
        parameters: Parameters<'_>,
    ) -> Result<u64, SqlError> {
        let executing = async |client: &Object| {
            let statement = client.prepare_cached(text).await?;
            Ok(client.execute(&statement, parameters).await?)
        };
        self.on_connection(ANSWER_TIME, executing).await
    }
}

impl SessionShared {
    /// As [`DatabasePool::rows`], next to all else.
    pub(super) async fn rows(
        &self,
        text: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, SqlError> {
        self.pool.rows(text, parameters).await
    }

    /// As [`DatabasePool::execute`], next to all else.
    pub(super) async fn execute(
        &self,
        text: &str,
        parameters: Parameters<'_>,
    ) -> Result<u64, SqlError> {
        self.pool.execute(text, parameters).await
    }
}

/// A column of a row. One that cannot be read is no connection that was lost.
pub(super) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<T, SqlError> {
    row.try_get(column).map_err(|error| SqlError::Refused(in_words(&error)))
}
