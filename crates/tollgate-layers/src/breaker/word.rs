//! The state of a breaker in one machine word, so that the closed path is one atomic load.

/// What a breaker does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// The store is asked.
    Closed,
    /// One call asks the store, as a probe; all others fail at once.
    HalfOpen,
    /// Calls fail at once until the next probe is due.
    Open,
}

/// A state, what is counted in it, and how many changes came before.
///
/// A call remembers the generation it began in; once another one has come, its outcome says nothing about the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) state: BreakerState,
    pub(super) generation: u32,
    /// Closed: failures in a row. Otherwise: probes that failed in this outage.
    pub(super) count: u32,
}

const STATE: u32 = 32;
const GENERATION: u32 = 34;
/// Thirty bits: a call would have to last a billion changes to take a later generation for its own.
const GENERATIONS: u32 = (1 << 30) - 1;

impl Word {
    pub(super) const CLOSED: Self = Self {
        state: BreakerState::Closed,
        generation: 0,
        count: 0,
    };

    /// The word after a change to `state`.
    pub(super) const fn change(self, state: BreakerState, count: u32) -> Self {
        Self {
            state,
            generation: self.generation.wrapping_add(1) & GENERATIONS,
            count,
        }
    }

    /// Whether a call of `generation` may still count here.
    pub(super) fn is_closed_in(self, generation: u32) -> bool {
        self.state == BreakerState::Closed && self.generation == generation
    }

    pub(super) const fn count(self, count: u32) -> Self {
        Self { count, ..self }
    }

    pub(super) fn pack(self) -> u64 {
        let state: u64 = match self.state {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        };
        u64::from(self.generation) << GENERATION | state << STATE | u64::from(self.count)
    }

    #[inline]
    pub(super) fn unpack(packed: u64) -> Self {
        let state = match packed >> STATE & 0b11 {
            0 => BreakerState::Closed,
            1 => BreakerState::HalfOpen,
            _ => BreakerState::Open,
        };
        let part = |bits: u64| u32::try_from(bits).unwrap_or(u32::MAX);
        Self {
            state,
            generation: part(packed >> GENERATION),
            count: part(packed & u64::from(u32::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::{Just, Strategy};

    use super::*;

    fn state() -> impl Strategy<Value = BreakerState> {
        prop_oneof![
            Just(BreakerState::Closed),
            Just(BreakerState::HalfOpen),
            Just(BreakerState::Open)
        ]
    }

    proptest! {
        #[test]
        fn a_word_is_read_as_it_was_written(state in state(), generation in 0..=GENERATIONS, count in any::<u32>()) {
            let word = Word { state, generation, count };
            prop_assert_eq!(Word::unpack(word.pack()), word);
        }

        #[test]
        fn every_change_begins_another_generation(state in state(), generation in 0..=GENERATIONS, count in any::<u32>()) {
            let word = Word { state: BreakerState::Closed, generation, count };
            let changed = Word::unpack(word.change(state, 0).pack());
            prop_assert_eq!(changed.generation, if generation == GENERATIONS { 0 } else { generation + 1 });
        }
    }
}
