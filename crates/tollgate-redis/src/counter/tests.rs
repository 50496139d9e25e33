//! Counting against a server that is played, so that others meet it at any moment.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use proptest::prelude::*;
use tollgate_core::ErrorKind;

use super::*;

const LIMIT: u64 = 20;

/// INCREX as the server carries it out.
fn increx(count: &mut u64, hit: Count, times: u64) -> Value {
    let wanted = hit.cost * times;
    let added = if *count + wanted <= hit.limit {
        wanted
    } else {
        0
    };
    *count += added;
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap());
    Value::Array(vec![number(*count), number(added)])
}

/// What is said about one hit of one unit, given when the window was found to end, at `now`, in milliseconds.
fn told(answer: Answer, end: End, now: u64) -> Verdicts {
    let mut tally = Tally::default();
    let minute = Count {
        cost: 1,
        limit: LIMIT,
        period: 60_000,
    };
    tally.push(b"key", minute);
    tally.keys[0].answers.push(answer);
    tally.keys[0].end = end;
    let now = Timestamp::from_micros(now * TICK).unwrap();
    Counted { tally, now }.verdicts(0).unwrap()
}

#[test]
fn a_window_that_ends_before_the_clock_is_read_is_told_as_of_its_last_millisecond() {
    let full = Answer {
        allowed: false,
        count: LIMIT,
    };
    let window = |start| {
        let start = Timestamp::from_micros(start * TICK).unwrap();
        Verdict::fixed_window(
            false,
            Some(FixedWindowState {
                start,
                count: LIMIT,
            }),
        )
    };
    // It ran from 40 s to 100 s, and was found full before its end was asked for at 100.005 s.
    let verdicts = told(full, End::At(100_000 * TICK), 100_005);
    assert_eq!(verdicts.at().as_micros(), 99_999 * TICK);
    assert_eq!(verdicts.as_slice(), [window(40_000)]);
    // The key was gone by then: all that is known is that it ended a moment ago.
    let verdicts = told(full, End::Gone, 100_005);
    assert_eq!(verdicts.at().as_micros(), 100_005 * TICK);
    assert_eq!(verdicts.as_slice(), [window(40_006)]);
}

#[test]
fn a_hit_that_never_fits_makes_no_window() {
    let verdicts = told(
        Answer {
            allowed: false,
            count: 0,
        },
        End::Gone,
        100_000,
    );
    assert_eq!(verdicts.as_slice(), [Verdict::fixed_window(false, None)]);
}

proptest! {
    /// Others hit the same counter between any two commands, and now and then its window ends.
    #[test]
    fn every_hit_is_answered_once_and_the_counter_holds_what_was_admitted(
        costs in prop::collection::vec(prop_oneof![4 => Just(1u64), 1 => 1..25u64], 1..40),
        others in prop::collection::vec(prop_oneof![3 => Just(None), 1 => (0..8u64).prop_map(Some)], 1..60),
    ) {
        let mut key = Key::new(b"key");
        key.hits = costs.iter().map(|cost| Count { cost: *cost, limit: LIMIT, period: 60_000 }).collect();
        let mut others = others.into_iter().cycle();
        let (mut count, mut added) = (0u64, 0u64);
        let mut round = 0;
        while !key.is_done() {
            let runs = key.runs(round < TOGETHER);
            let only = runs.len() == 1;
            for (hit, times) in runs {
                match others.next().flatten() {
                    Some(0) => count = 0,
                    Some(other) => count = (count + other).min(LIMIT),
                    None => {}
                }
                let before = count;
                let answer = increx(&mut count, hit, times);
                added += count - before;
                key.read(hit, times, only, answer).unwrap();
            }
            round += 1;
            prop_assert!(round < 100);
        }
        prop_assert_eq!(key.answers.len(), key.hits.len());
        let hits = key.answers.iter().zip(&key.hits);
        let admitted: u64 =
            hits.filter(|(answer, _)| answer.allowed).map(|(_, hit)| hit.cost).sum();
        prop_assert_eq!(admitted, added);
        prop_assert!(key.answers.iter().all(|answer| answer.count <= LIMIT));
    }
}

/// The next command that a client sends, if it goes on.
fn command(lines: &mut impl Iterator<Item = io::Result<String>>) -> Option<Vec<String>> {
    let count = lines.next()?.ok()?;
    let words: usize = count.strip_prefix('*')?.parse().ok()?;
    let word = |_| {
        let _length = lines.next()?.ok()?;
        lines.next()?.ok()
    };
    (0..words).map(word).collect()
}

/// A server that answers one trip, which ends with TIME, and hangs up. Under `nearly full` no five units
/// fit at once, under other keys everything does. From a command of the name `busy_from` on it is busy.
fn server_for_one_trip(busy_from: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let mut busy = false;
        while let Some(command) = command(&mut lines) {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            busy |= words.first() == Some(&busy_from);
            let answer = match words[..] {
                _ if busy => "-BUSY Redis is busy running a script.\r\n",
                ["INCREX", "nearly full", "BYINT", wanted, ..] if wanted != "1" => {
                    "*2\r\n:17\r\n:0\r\n"
                }
                ["INCREX", ..] => "*2\r\n:1\r\n:1\r\n",
                ["PEXPIRETIME", ..] => ":1700000060000\r\n",
                ["TIME"] => "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n",
                _ => "+OK\r\n",
            };
            stream.write_all(answer.as_bytes()).unwrap();
            if words == ["TIME"] {
                return;
            }
        }
    });
    port
}

async fn connection_to(port: u16) -> Connection {
    let client = redis::Client::open(("127.0.0.1", port)).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    Connection::from(connection)
}

#[tokio::test]
async fn who_was_counted_may_have_been_charged_though_the_server_refuses_what_comes_next() {
    for (busy_from, charged) in [("INCREX", false), ("PEXPIRETIME", true), ("TIME", true)] {
        let connection = connection_to(server_for_one_trip(busy_from)).await;
        let mut tally = Tally::default();
        tally.push(
            b"empty",
            Count {
                cost: 1,
                limit: LIMIT,
                period: 60_000,
            },
        );
        let counted = tally.count(&connection).await;
        let verdicts = counted.map_err(Error::from);
        let error = verdicts
            .and_then(|counted| counted.verdicts(0))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Overloaded, "{busy_from}: {error}");
        assert_eq!(error.may_have_charged(), charged, "{busy_from}");
    }
}

#[tokio::test]
async fn who_was_counted_is_told_so_though_a_later_trip_fails() {
    let connection = connection_to(server_for_one_trip("nothing")).await;
    let hit = Count {
        cost: 1,
        limit: LIMIT,
        period: 60_000,
    };
    let mut tally = Tally::default();
    tally.push(b"empty", hit);
    for _ in 0..5 {
        tally.push(b"nearly full", hit);
    }
    let counted = tally.count(&connection).await.unwrap();
    assert!(counted.verdicts(0).unwrap().is_allowed());
    // Five did not fit at once, and how many do was to be asked in a second trip.
    for index in 1..=5 {
        let error = counted.verdicts(index).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
}
