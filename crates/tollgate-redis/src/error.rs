//! Redis' troubles as errors of the family.

use std::error::Error as StdError;
#[cfg(any(
    feature = "deadpool",
    feature = "cluster",
    feature = "sentinel",
    feature = "tls-rustls"
))]
use std::sync::Arc;

use redis::{ErrorKind as RedisKind, RedisError, ServerErrorKind, Value};
use tollgate_core::{Error, ErrorKind};

/// How errors name this store.
pub(crate) const STORE: &str = "redis";

/// Why a command has no answer. Cloned for everybody whose hit travelled in one call.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server refused it, or the connection failed while it was under way.
    Command(RedisError),
    /// The server refused it, and had carried out a command that charges just before.
    AfterCharge(RedisError),
    /// It was never sent: no pool, cluster or sentinel had a connection for it.
    #[cfg(any(feature = "deadpool", feature = "cluster", feature = "sentinel"))]
    Unsent {
        kind: ErrorKind,
        message: &'static str,
        source: Option<Arc<dyn StdError + Send + Sync>>,
    },
    /// It was answered with something else than an answer to it.
    Strange(&'static str),
    /// The task that carried it was dropped with its runtime.
    Abandoned,
}

impl Failure {
    pub(crate) fn is_no_script(&self) -> bool {
        self.server_kind() == Some(ServerErrorKind::NoScript)
    }

    /// Whether the server says that it is no master any more, or not for this key.
    pub(crate) fn is_misplaced(&self) -> bool {
        match self {
            Self::Command(error) => is_misplaced(code_of(error.code(), error.detail())),
            _ => false,
        }
    }

    pub(crate) fn is_no_permission(&self) -> bool {
        self.server_kind() == Some(ServerErrorKind::NoPerm)
    }

    /// The same, of a command that came after one that charged.
    pub(crate) fn after_charge(self) -> Self {
        match self {
            Self::Command(error) => Self::AfterCharge(error),
            other => other,
        }
    }

    /// An error from before there was a connection to send the command over.
    #[cfg(any(feature = "cluster", feature = "sentinel"))]
    pub(crate) fn while_connecting(error: RedisError) -> Self {
        Self::Unsent {
            kind: judge(&error).0,
            message: "there is no connection to the server",
            source: Some(Arc::new(error)),
        }
    }

    fn server_kind(&self) -> Option<ServerErrorKind> {
        match self {
            Self::Command(error) => match error.kind() {
                RedisKind::Server(kind) => Some(kind),
                _ => None,
            },
            _ => None,
        }
    }
}

fn is_misplaced(code: &str) -> bool {
    matches!(code, "READONLY" | "MASTERDOWN")
}

/// The code that says what a server's error means.
///
/// Where Redis 7 refuses a script's command with `READONLY You can't …`, Redis 6.2 puts words around it:
/// `ERR Error running script (call to f_…): @user_script:9: @user_script: 9: -READONLY You can't …`.
fn code_of<'a>(code: Option<&'a str>, detail: Option<&'a str>) -> &'a str {
    let code = code.unwrap_or_default();
    let inner = detail
        .filter(|_| code == "ERR")
        .and_then(|detail| detail.strip_prefix("Error running script "))
        .and_then(|around| around.split_once(": -"))
        .and_then(|(_, refusal)| refusal.split(' ').next());
    inner.unwrap_or(code)
}

/// Whether an answer, or one of several, says that the server is no master any more.
pub(crate) fn says_misplaced(answer: &Result<Value, Failure>) -> bool {
    match answer {
        Ok(Value::Array(answers)) => answers.iter().any(|answer| match answer {
            Value::ServerError(error) => is_misplaced(code_of(Some(error.code()), error.details())),
            _ => false,
        }),
        Ok(_) => false,
        Err(failure) => failure.is_misplaced(),
    }
}

/// Whether the connection that an answer came over should not be used again.
#[cfg(any(feature = "deadpool", feature = "sentinel"))]
pub(crate) fn spoils_connection(answer: &Result<Value, Failure>) -> bool {
    let broken = |error: &RedisError| error.is_unrecoverable_error() || error.is_timeout();
    says_misplaced(answer) || matches!(answer, Err(Failure::Command(error)) if broken(error))
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::Command(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Command(error) => during_command(error),
            Failure::AfterCharge(error) => during_command(error).with_charge_unknown(),
            #[cfg(any(feature = "deadpool", feature = "cluster", feature = "sentinel"))]
            Failure::Unsent {
                kind,
                message,
                source,
            } => {
                let error = Error::new(kind, message).with_store(STORE);
                match source {
                    Some(source) => error.with_source(source),
                    None => error,
                }
            }
            Failure::Strange(detail) => Error::new(
                ErrorKind::Other,
                format!("the server's answer cannot be read: {detail}"),
            )
            .with_store(STORE)
            .with_charge_unknown(),
            Failure::Abandoned => Error::new(
                ErrorKind::Unavailable,
                "the runtime on which the call was under way has shut down",
            )
            .with_store(STORE)
            .with_charge_unknown(),
        }
    }
}

/// The kind of an error that came back for a command, a sentence of advice, and whether a charge may have happened.
fn during_command(error: RedisError) -> Error {
    let (kind, advice, charge_unknown) = judge(&error);
    let mapped = Error::new(kind, advice)
        .with_store(STORE)
        .with_source(error);
    if charge_unknown {
        mapped.with_charge_unknown()
    } else {
        mapped
    }
}

/// A server that refuses the call or its first write has charged nothing: after a script's first write, neither memory
/// nor the role of the server is looked at again.
fn judge(error: &RedisError) -> (ErrorKind, &'static str, bool) {
    if error.kind() == RedisKind::Server(ServerErrorKind::ExecAbort)
        && let Some(refused) = error.clone().into_server_errors()
        && let [(_, first), ..] = &refused[..]
    {
        // A command of a transaction was refused, so none was carried out.
        let (kind, advice, _) = judge(&RedisError::from(first.clone()));
        return (kind, advice, false);
    }
    if error.is_timeout() {
        let advice = "no answer in time; the hit may have been charged all the same. \
            If this is frequent, look at the server's load or raise the connection's response timeout";
        return (ErrorKind::Timeout, advice, true);
    }
    if error.is_connection_refusal() {
        let advice = "nobody listens at the server's address";
        return (ErrorKind::Unavailable, advice, false);
    }
    if failed_handshake(error) {
        let advice = "no encrypted connection could be made; the source says why";
        return (ErrorKind::Unavailable, advice, false);
    }
    match error.kind() {
        RedisKind::Server(_) | RedisKind::Extension => by_code(error),
        RedisKind::Io => (
            ErrorKind::Unavailable,
            "the connection broke before the answer came",
            true,
        ),
        RedisKind::Parse => (
            ErrorKind::Unavailable,
            "the connection broke within an answer, or what came is none; it is given up",
            true,
        ),
        RedisKind::AuthenticationFailed => (
            ErrorKind::Refused,
            "the server refused the user name or the password",
            false,
        ),
        RedisKind::ClusterConnectionNotFound => (
            ErrorKind::Unavailable,
            "no node of the cluster that serves this key can be reached",
            false,
        ),
        RedisKind::MasterNameNotFoundBySentinel
        | RedisKind::NoValidReplicasFoundBySentinel
        | RedisKind::EmptySentinelList => (
            ErrorKind::Unavailable,
            "the sentinels know no master of that name just now",
            false,
        ),
        RedisKind::InvalidClientConfig | RedisKind::RESP3NotSupported => (
            ErrorKind::Refused,
            "the connection's settings do not go together with this server",
            false,
        ),
        _ => (ErrorKind::Other, "the command failed", true),
    }
}

/// Whether the TLS library would not connect, so that nothing was sent: it did not trust the server, say.
fn failed_handshake(error: &RedisError) -> bool {
    let source = error.source();
    #[cfg(feature = "tls-rustls")]
    {
        // An `io::Error` does not show what it holds as its source.
        let cause = source
            .and_then(|source| source.downcast_ref::<Arc<dyn StdError + Send + Sync>>())
            .and_then(|shared| shared.downcast_ref::<std::io::Error>())
            .and_then(std::io::Error::get_ref)
            .and_then(|inner| inner.downcast_ref::<rustls::Error>());
        // Other errors of rustls may end a connection that was in use.
        if let Some(rustls::Error::InvalidCertificate(_)) = cause {
            return true;
        }
    }
    // What the driver itself fails with before it sends has no source unless a TLS library is it.
    error.kind() == RedisKind::Client && source.is_some()
}

/// Charged or not: a script that may not expire a key, say, has changed it by then.
const NO_PERMISSION: &str =
    "the user lacks a permission; the documentation lists the commands and keys that it needs";

fn by_code(error: &RedisError) -> (ErrorKind, &'static str, bool) {
    // What a script may not do is told without a code of its own, in the words of 6.2 and 7, or of 8.
    let detail = error.detail().unwrap_or_default();
    if detail.contains("user executing the script can't") || detail.contains("ACL failure") {
        return (ErrorKind::Refused, NO_PERMISSION, true);
    }
    match code_of(error.code(), error.detail()) {
        "LOADING" => (
            ErrorKind::Unavailable,
            "the server is still loading its data",
            false,
        ),
        "READONLY" => (
            ErrorKind::Unavailable,
            "the server has become a replica; the next call looks for the master",
            false,
        ),
        "MASTERDOWN" => (
            ErrorKind::Unavailable,
            "the server is a replica that has lost its master",
            false,
        ),
        "CLUSTERDOWN" => (
            ErrorKind::Unavailable,
            "the cluster does not serve this key's slot just now; see CLUSTER INFO",
            false,
        ),
        "MOVED" | "ASK" | "TRYAGAIN" => (
            ErrorKind::Unavailable,
            "the key's slot is moving to another node; with a cluster, use a cluster connection",
            false,
        ),
        "CROSSSLOT" => (
            ErrorKind::Unsupported,
            "the keys of one call lie in several slots of a cluster; with a cluster, use a cluster connection",
            false,
        ),
        "NOSCRIPT" => (
            ErrorKind::Other,
            "the server does not keep scripts, not even the one it was just given",
            false,
        ),
        "NOPERM" => (ErrorKind::Refused, NO_PERMISSION, true),
        "OOM" => (
            ErrorKind::Overloaded,
            "the server is at its `maxmemory` and evicts nothing; raise it, or set a `maxmemory-policy` that evicts",
            false,
        ),
        "NOAUTH" => (
            ErrorKind::Refused,
            "the server wants a password; put it into the connection's address",
            false,
        ),
        "WRONGPASS" => (
            ErrorKind::Refused,
            "the server refused the user name or the password",
            false,
        ),
        "BUSY" => (
            ErrorKind::Overloaded,
            "the server is busy with somebody's script; see SCRIPT KILL",
            false,
        ),
        "MISCONF" => (
            ErrorKind::Unavailable,
            "the server cannot save to its disk and so refuses writes; see its log",
            false,
        ),
        "NOREPLICAS" => (
            ErrorKind::Unavailable,
            "the server has fewer replicas than `min-replicas-to-write` wants",
            false,
        ),
        "UNBLOCKED" => (ErrorKind::Unavailable, "the server changed its role", true),
        _ => (
            ErrorKind::Other,
            "the server answered with an error; the source has its words",
            true,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of a server's reply, word for word.
    fn mapped(reply: &str) -> Error {
        let value = redis::parse_redis_value(format!("{reply}\r\n").as_bytes()).unwrap();
        Failure::Command(value.extract_error().unwrap_err()).into()
    }

    #[test]
    fn every_refusal_has_a_kind_and_a_sentence_and_charged_nothing() {
        use ErrorKind::{Overloaded, Refused, Unavailable, Unsupported};
        let replies = [
            (
                "-LOADING Redis is loading the dataset in memory",
                Unavailable,
                "loading",
            ),
            (
                "-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
                Unavailable,
                "lost its master",
            ),
            (
                "-READONLY You can't write against a read only replica.",
                Unavailable,
                "replica",
            ),
            (
                "-CLUSTERDOWN Hash slot not served",
                Unavailable,
                "CLUSTER INFO",
            ),
            ("-MOVED 3999 127.0.0.1:6381", Unavailable, "moving"),
            (
                "-TRYAGAIN Multiple keys request during rehashing of slot",
                Unavailable,
                "moving",
            ),
            (
                "-CROSSSLOT Keys in request don't hash to the same slot",
                Unsupported,
                "cluster",
            ),
            (
                "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
                Unavailable,
                "disk",
            ),
            (
                "-NOREPLICAS Not enough good replicas to write.",
                Unavailable,
                "replicas",
            ),
            (
                "-OOM command not allowed when used memory > 'maxmemory'.",
                Overloaded,
                "maxmemory",
            ),
            (
                "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
                Overloaded,
                "SCRIPT KILL",
            ),
            ("-NOAUTH Authentication required.", Refused, "password"),
            (
                "-WRONGPASS invalid username-password pair or user is disabled.",
                Refused,
                "password",
            ),
        ];
        for (reply, kind, advice) in replies {
            let error = mapped(reply);
            assert_eq!(error.kind(), kind, "{reply}");
            assert!(error.to_string().contains(advice), "{error}");
            assert!(!error.may_have_charged(), "{reply}");
            assert!(std::error::Error::source(&error).is_some());
        }
    }

    #[test]
    fn what_redis_6_refuses_to_a_script_is_told_by_the_code_within() {
        use ErrorKind::{Overloaded, Unavailable};
        let replies = [
            (
                "READONLY You can't write against a read only replica.",
                Unavailable,
            ),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                Overloaded,
            ),
            (
                "MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.",
                Unavailable,
            ),
            ("NOREPLICAS Not enough good replicas to write.", Unavailable),
        ];
        for (reply, kind) in replies {
            let around = "-ERR Error running script (call to f_41d08d75): @user_script:1: @user_script: 1: -";
            let error = mapped(&format!("{around}{reply}"));
            assert_eq!(error.kind(), kind, "{reply}");
            assert!(!error.may_have_charged(), "{reply}");
            // Alone and among the answers of several commands.
            let reply = format!("*1\r\n{around}{reply}\r\n");
            let answers = redis::parse_redis_value(reply.as_bytes()).unwrap();
            assert_eq!(says_misplaced(&Ok(answers)), reply.contains("READONLY"));
        }
    }

    #[test]
    fn an_answer_that_breaks_off_or_is_none_is_a_broken_connection() {
        for reply in ["*2\r\n:1", "\u{9}\r\n"] {
            let broken = redis::parse_redis_value(reply.as_bytes()).unwrap_err();
            let error = Error::from(Failure::Command(broken));
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            assert!(error.may_have_charged());
        }
    }

    #[test]
    fn what_nobody_knows_may_have_charged() {
        for reply in [
            "-ERR string exceeds maximum allowed size (proto-max-bulk-len)",
            "-NOPERM User limited has no permissions to run the 'evalsha' command",
            "-ERR The user executing the script can't run this command or subcommand",
            "-SOMETHING new",
        ] {
            assert!(mapped(reply).may_have_charged(), "{reply}");
        }
    }
}
