//! What is sent: one call of one function, prepared or as text.

use std::fmt::Write as _;
use std::sync::Arc;

use sqlx::query::QueryScalar;
use sqlx::{AssertSqlSafe, PgConnection, Row};
use tollgate_core::Timestamp;

use crate::hits::Hits;
use crate::question::Arguments;
use crate::schema::Schema;

/// The calls of one schema's functions.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    apply: Arc<str>,
    hit: Arc<str>,
    hits: Arc<str>,
    reset: Arc<str>,
    sweep: Arc<str>,
    prepared: bool,
}

/// One call, with all but what changes from attempt to attempt.
#[derive(Debug)]
pub(crate) enum Statement<'a> {
    Apply {
        arguments: &'a Arguments<'a>,
        at: Option<Timestamp>,
    },
    Hits {
        hits: &'a Hits<'a>,
        at: Option<Timestamp>,
    },
    Reset {
        keys: &'a [Box<[u8]>],
    },
    Sweep {
        logs: bool,
        first_page: i64,
        page_count: i64,
    },
}

/// What changes from attempt to attempt, and what is the same for all calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) locked: bool,
    pub(crate) lock_millis: i32,
    pub(crate) commit: Option<&'static str>,
}

impl Calls {
    pub(crate) fn new(schema: &Schema, prepared: bool) -> Self {
        let (schema, version) = (schema.quoted(), Schema::VERSION);
        Self {
            apply: format!("SELECT {schema}.apply_v{version}($1, $2, $3, $4, $5, $6, $7, $8)")
                .into(),
            hit: format!("SELECT {schema}.hit_v{version}($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)")
                .into(),
            hits: format!("SELECT {schema}.hits_v{version}($1, $2, $3, $4, $5)").into(),
            reset: format!("SELECT ARRAY[{schema}.reset_v{version}($1, $2, $3)]").into(),
            sweep: format!("SELECT {schema}.sweep_v{version}($1, $2, $3)").into(),
            prepared,
        }
    }

    /// Sends the call and waits until it is committed.
    pub(crate) async fn send(
        &self,
        connection: &mut PgConnection,
        statement: &Statement<'_>,
        manner: Manner,
    ) -> Result<Vec<i64>, sqlx::Error> {
        // Every row is awaited, not only the first: the commit, which may fail, comes after it.
        let mut rows: Vec<Vec<i64>> = if self.prepared {
            self.send_prepared(connection, statement, manner).await?
        } else {
            let text = AssertSqlSafe(self.text(statement, manner));
            let rows = sqlx::raw_sql(text).fetch_all(connection).await?;
            rows.iter()
                .map(|row| row.try_get(0))
                .collect::<Result<_, _>>()?
        };
        rows.pop().ok_or(sqlx::Error::RowNotFound)
    }

    async fn send_prepared(
        &self,
        connection: &mut PgConnection,
        statement: &Statement<'_>,
        manner: Manner,
    ) -> Result<Vec<Vec<i64>>, sqlx::Error> {
        let query = match statement {
            Statement::Apply { arguments, at } => {
                sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.apply)))
                    .bind(&arguments.keys)
                    .bind(&arguments.families)
                    .bind(&arguments.checks)
                    .bind(at.map(micros))
                    .bind(arguments.together)
                    .bind(manner.locked)
            }
            Statement::Hits { hits, at } => {
                let query = if let Some((key, numbers)) = hits.one() {
                    let query = sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.hit))).bind(key);
                    numbers.into_iter().fold(query, QueryScalar::bind)
                } else {
                    sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.hits)))
                        .bind(&hits.keys)
                        .bind(&hits.numbers)
                };
                query.bind(at.map(micros))
            }
            Statement::Reset { keys } => {
                let keys: Vec<&[u8]> = keys.iter().map(|key| &**key).collect();
                sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.reset))).bind(keys)
            }
            Statement::Sweep {
                logs,
                first_page,
                page_count,
            } => {
                return sqlx::query_scalar(AssertSqlSafe(Arc::clone(&self.sweep)))
                    .bind(logs)
                    .bind(first_page)
                    .bind(page_count)
                    .fetch_all(connection)
                    .await;
            }
        };
        query
            .bind(manner.lock_millis)
            .bind(manner.commit)
            .fetch_all(connection)
            .await
    }

    /// The call as text. Nothing but digits, and words of this file, goes into it.
    fn text(&self, statement: &Statement<'_>, manner: Manner) -> String {
        let null = || "NULL".to_owned();
        let (call, mut values) = match statement {
            Statement::Apply { arguments, at } => (
                &self.apply,
                vec![
                    key_list(arguments.keys.iter().copied()),
                    number_list(&arguments.families),
                    number_list(&arguments.checks),
                    at.map_or_else(null, |at| micros(at).to_string()),
                    arguments.together.to_string(),
                    manner.locked.to_string(),
                ],
            ),
            Statement::Hits { hits, at } => {
                let (call, mut values) = match hits.one() {
                    Some((key, numbers)) => {
                        let numbers = numbers.iter().map(i64::to_string);
                        (
                            &self.hit,
                            std::iter::once(key_text(key)).chain(numbers).collect(),
                        )
                    }
                    None => {
                        let keys = key_list(hits.keys.iter().copied());
                        (&self.hits, vec![keys, number_list(&hits.numbers)])
                    }
                };
                values.push(at.map_or_else(null, |at| micros(at).to_string()));
                (call, values)
            }
            Statement::Reset { keys } => {
                let keys = key_list(keys.iter().map(|key| &**key));
                (&self.reset, vec![keys])
            }
            Statement::Sweep {
                logs,
                first_page,
                page_count,
            } => {
                let values = [logs.to_string(), first_page.to_string()];
                let values = values.into_iter().chain([page_count.to_string()]);
                (&self.sweep, values.collect())
            }
        };
        values.push(manner.lock_millis.to_string());
        values.push(
            manner
                .commit
                .map_or_else(null, |commit| format!("'{commit}'")),
        );
        let mut pieces = call.split('$');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for (piece, value) in pieces.zip(&values) {
            text.push_str(value);
            // Behind the dollar sign stands the parameter's number.
            text.push_str(piece.trim_start_matches(|sign: char| sign.is_ascii_digit()));
        }
        text
    }
}

fn micros(at: Timestamp) -> i64 {
    i64::try_from(at.as_micros()).unwrap_or(i64::MAX)
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all that is written");
    }
}

/// As `E'...'`, in which a backslash means the same whatever the session's `standard_conforming_strings`.
fn key_text(key: &[u8]) -> String {
    let mut text = String::from(r"E'\\x");
    push_hex(&mut text, key);
    text.push_str("'::bytea");
    text
}

fn key_list<'a>(keys: impl Iterator<Item = &'a [u8]>) -> String {
    let mut text = String::from("E'{");
    for (index, key) in keys.enumerate() {
        text.push_str(if index > 0 { ",\"" } else { "\"" });
        text.push_str(r"\\\\x");
        push_hex(&mut text, key);
        text.push('"');
    }
    text.push_str("}'::bytea[]");
    text
}

fn number_list<N: std::fmt::Display>(numbers: &[N]) -> String {
    let mut text = String::from("'{");
    for (index, number) in numbers.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        write!(text, "{comma}{number}").expect("a string takes all that is written");
    }
    text.push_str("}'");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_call_holds_every_value_in_its_place() {
        let schema = Schema::new("limits").unwrap();
        let calls = Calls::new(&schema, false);
        let arguments = Arguments {
            keys: vec![b"'\\", b"b"],
            families: vec![0, 3],
            checks: vec![1, -2],
            together: false,
        };
        let manner = Manner {
            locked: true,
            lock_millis: 250,
            commit: Some("off"),
        };
        let statement = Statement::Apply {
            arguments: &arguments,
            at: None,
        };
        assert_eq!(
            calls.text(&statement, manner),
            r#"SELECT "limits".apply_v1(E'{"\\\\x275c","\\\\x62"}'::bytea[], '{0,3}', '{1,-2}', NULL, false, true, 250, 'off')"#
        );
        let hits = Hits {
            keys: vec![b"a", b"b"],
            numbers: vec![5, 1, 1, 1, 1, 2, 5, 1, 1, 1, 1, 1],
        };
        let statement = Statement::Hits {
            hits: &hits,
            at: Timestamp::from_micros(7).ok(),
        };
        assert_eq!(
            calls.text(&statement, manner),
            r#"SELECT "limits".hits_v1(E'{"\\\\x61","\\\\x62"}'::bytea[], '{5,1,1,1,1,2,5,1,1,1,1,1}', 7, 250, 'off')"#
        );
        let hits = Hits {
            keys: vec![b"a'"],
            numbers: vec![5, 1, 2, 3, 4, 6],
        };
        let statement = Statement::Hits {
            hits: &hits,
            at: None,
        };
        assert_eq!(
            calls.text(&statement, manner),
            r#"SELECT "limits".hit_v1(E'\\x6127'::bytea, 5, 1, 2, 3, 4, 6, NULL, 250, 'off')"#
        );
        let statement = Statement::Reset {
            keys: &[Box::from(*b"k")],
        };
        assert_eq!(
            calls.text(&statement, manner),
            r#"SELECT ARRAY["limits".reset_v1(E'{"\\\\x6b"}'::bytea[], 250, 'off')]"#
        );
    }
}
