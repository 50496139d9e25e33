//! Admitted hits at each moment of traffic that comes at a few moments only.

use tollgate_core::Timestamp;

/// More moments than this are no longer a table to read.
const MAX_MOMENTS: usize = 8;

/// One instant of the traffic.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) time: Timestamp,
    pub(crate) hits: u64,
    /// Hits admitted by each run.
    pub(crate) admitted: Vec<u64>,
}

/// The moments of the traffic, as long as they are few.
#[derive(Debug)]
pub(crate) struct Moments {
    runs: usize,
    /// `None` once there were too many.
    list: Option<Vec<Moment>>,
}

impl Moments {
    pub(crate) fn new(runs: usize) -> Self {
        Self {
            runs,
            list: Some(Vec::new()),
        }
    }

    /// Counts a hit at `time`, which is never before an earlier call's.
    pub(crate) fn count_hit(&mut self, time: Timestamp) {
        let Some(list) = &mut self.list else { return };
        if list.last().is_none_or(|moment| moment.time != time) {
            if list.len() == MAX_MOMENTS {
                self.list = None;
                return;
            }
            list.push(Moment {
                time,
                hits: 0,
                admitted: vec![0; self.runs],
            });
        }
        if let Some(moment) = list.last_mut() {
            moment.hits += 1;
        }
    }

    /// Says that the hit counted last was admitted by a run.
    pub(crate) fn count_admitted(&mut self, run: usize) {
        if let Some(moment) = self.list.as_mut().and_then(|list| list.last_mut()) {
            moment.admitted[run] += 1;
        }
    }

    /// All moments, or nothing if there were too many.
    pub(crate) fn list(&self) -> &[Moment] {
        self.list.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(seconds: impl IntoIterator<Item = u64>) -> Moments {
        let mut moments = Moments::new(2);
        for second in seconds {
            moments.count_hit(Timestamp::from_micros(second).unwrap());
            moments.count_admitted(1);
        }
        moments
    }

    #[test]
    fn hits_of_one_instant_are_one_moment() {
        let moments = counted([0, 59, 59]);
        let found: Vec<_> = moments
            .list()
            .iter()
            .map(|moment| (moment.hits, moment.admitted.clone()))
            .collect();
        assert_eq!(found, [(1, vec![0, 1]), (2, vec![0, 2])]);
    }

    #[test]
    fn too_many_moments_are_no_list() {
        assert_eq!(counted(0..8).list().len(), 8);
        assert_eq!(counted(0..9).list(), []);
    }
}
