//! Which families of headers a response carries, as text.

use std::str::FromStr;

use super::error::ValueError;

/// The families that are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Families {
    pub(super) x_rate_limit: bool,
    pub(super) rate_limit: bool,
}

impl Families {
    /// The families of these names.
    pub(super) fn of<N: AsRef<str>>(
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, ValueError> {
        let mut families = Self::default();
        for name in names {
            let name = name.as_ref().trim();
            let family = match name.to_ascii_lowercase().as_str() {
                "x-ratelimit" => &mut families.x_rate_limit,
                "ratelimit" => &mut families.rate_limit,
                _ => return Err(ValueError::Headers(name.to_owned())),
            };
            *family = true;
        }
        Ok(families)
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let x_rate_limit = self.x_rate_limit.then_some("x-ratelimit");
        let rate_limit = self.rate_limit.then_some("ratelimit");
        x_rate_limit.into_iter().chain(rate_limit)
    }
}

impl FromStr for Families {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text.trim().eq_ignore_ascii_case("none") {
            return Ok(Self::default());
        }
        Self::of(text.split(','))
    }
}
