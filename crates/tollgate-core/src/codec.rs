//! States as bytes, for stores that keep bytes.
//!
//! Version 1, the only one so far: the byte `1`, the family's letter (`b`, `f`, `w` or `l`), then numbers as
//! little-endian `u64`: `updated level unit` | `start count` | `start count previous` | `at units` for each hit.

use crate::algorithm::{
    BucketState, FixedWindowState, MAX_STORED, SlidingLogState, SlidingWindowState, State,
};
use crate::error::{Error, ErrorKind, Result};
use crate::time::Timestamp;

const VERSION: u8 = 1;

impl State {
    /// The state as bytes, which [`decode`](Self::decode) of this and every later version reads.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let mut put = |letter: u8, numbers: &mut dyn Iterator<Item = u64>| {
            bytes.push(letter);
            numbers.for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        };
        match self {
            Self::Bucket(BucketState {
                updated,
                level,
                unit,
            }) => {
                put(b'b', &mut [updated.as_micros(), *level, *unit].into_iter());
            }
            Self::FixedWindow(FixedWindowState { start, count }) => {
                put(b'f', &mut [start.as_micros(), *count].into_iter());
            }
            Self::SlidingWindow(SlidingWindowState {
                start,
                count,
                previous,
            }) => {
                put(
                    b'w',
                    &mut [start.as_micros(), *count, *previous].into_iter(),
                );
            }
            Self::SlidingLog(log) => {
                put(
                    b'l',
                    &mut log.hits().flat_map(|(at, units)| [at.as_micros(), units]),
                );
            }
        }
        bytes
    }

    /// The state that [`encode`](Self::encode) made into `bytes`.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for anything that `encode` cannot have made: another version, a torn or overlong value,
    /// numbers out of range or instants out of order. Nothing is guessed.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (header, body) = bytes
            .split_at_checked(2)
            .ok_or_else(|| corrupt("it is too short"))?;
        if header[0] != VERSION {
            return Err(corrupt(format!(
                "it has version {}, and this library reads version 1",
                header[0]
            )));
        }
        let (numbers, rest) = body.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(corrupt("it ends in the middle of a number"));
        }
        let mut decoded = Vec::with_capacity(numbers.len());
        for number in numbers {
            let number = u64::from_le_bytes(*number);
            if number > MAX_STORED {
                return Err(corrupt(format!("it holds {number}, which is out of range")));
            }
            decoded.push(number);
        }
        match (header[1], &decoded[..]) {
            (b'b', [updated, level, unit]) if *unit > 0 => Ok(Self::Bucket(BucketState {
                updated: instant(*updated)?,
                level: *level,
                unit: *unit,
            })),
            (b'f', [start, count]) => Ok(Self::FixedWindow(FixedWindowState {
                start: instant(*start)?,
                count: *count,
            })),
            (b'w', [start, count, previous]) => Ok(Self::SlidingWindow(SlidingWindowState {
                start: instant(*start)?,
                count: *count,
                previous: *previous,
            })),
            (b'l', hits) => decode_log(hits),
            (letter, _) => Err(corrupt(format!(
                "it is marked {:?} and holds {} numbers",
                char::from(letter),
                decoded.len()
            ))),
        }
    }
}

fn decode_log(numbers: &[u64]) -> Result<State> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(corrupt("its last hit has no cost"));
    }
    let mut hits = Vec::with_capacity(pairs.len());
    for [at, units] in pairs {
        let at = instant(*at)?;
        if *units == 0 || hits.last().is_some_and(|(earlier, _)| *earlier >= at) {
            return Err(corrupt("its hits are out of order"));
        }
        hits.push((at, *units));
    }
    let total = hits
        .iter()
        .try_fold(0_u64, |total, (_, units)| total.checked_add(*units));
    if total.is_none_or(|total| total > MAX_STORED) {
        return Err(corrupt("its hits add up to more than any limit"));
    }
    Ok(State::SlidingLog(Box::new(SlidingLogState::from_hits(
        hits,
    ))))
}

fn instant(micros: u64) -> Result<Timestamp> {
    Timestamp::from_micros(micros)
        .map_err(|range| corrupt("it holds an instant out of range").with_source(range))
}

fn corrupt(detail: impl std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("the stored state is not one this library wrote: {detail}"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros).unwrap()
    }

    /// What version 1 looks like, byte for byte: whoever stored it must be able to read it for ever.
    #[test]
    fn version_one_is_read_and_written_as_it_was_published() {
        let bucket = State::Bucket(BucketState {
            updated: at(258),
            level: 7,
            unit: 3,
        });
        let bytes = b"\x01b\x02\x01\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
        assert_eq!(bucket.encode(), bytes);
        assert_eq!(State::decode(bytes).unwrap(), bucket);

        let window = State::FixedWindow(FixedWindowState {
            start: at(1),
            count: 2,
        });
        let bytes = b"\x01f\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0";
        assert_eq!(window.encode(), bytes);
        assert_eq!(State::decode(bytes).unwrap(), window);

        let windows = State::SlidingWindow(SlidingWindowState {
            start: at(1),
            count: 2,
            previous: 3,
        });
        let bytes = b"\x01w\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0";
        assert_eq!(windows.encode(), bytes);
        assert_eq!(State::decode(bytes).unwrap(), windows);

        let log = State::SlidingLog(Box::new(SlidingLogState::from_hits([
            (at(1), 2),
            (at(5), 1),
        ])));
        let bytes =
            b"\x01l\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0";
        assert_eq!(log.encode(), bytes);
        assert_eq!(State::decode(bytes).unwrap(), log);
    }

    #[test]
    fn a_torn_or_foreign_value_is_corrupt_and_says_why() {
        let cases: [(&[u8], &str); 6] = [
            (b"", "too short"),
            (b"\x02b", "version 2"),
            (b"\x01b\x01", "middle of a number"),
            (b"\x01f\x01\0\0\0\0\0\0\0", "'f' and holds 1 numbers"),
            (b"\x01l\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "out of order"),
            (
                b"\x01f\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\0\0\0",
                "out of range",
            ),
        ];
        for (bytes, why) in cases {
            let error = State::decode(bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains(why), "{error} should say {why}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_decodes_encodes_back(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(state) = State::decode(&bytes) {
                prop_assert_eq!(state.encode(), bytes);
            }
        }
    }
}
