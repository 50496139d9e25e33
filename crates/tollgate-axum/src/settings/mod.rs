//! Limits, keys and headers from a configuration file or from the environment.

mod env;
mod error;
mod families;
mod fields;
mod text;
mod timeout;
mod types;

use std::time::Duration;

use tollgate_core::{FailureMode, Policies, Policy};

use crate::headers::Headers;
use crate::key::ForwardedAddress;
use fields::Fields;

pub use error::{EnvError, SettingsError, ValueError, VariableError, VariableProblem};

/// What an operator may set without building anew: the default limit, who is limited, headers, and failures.
///
/// Needs the feature `settings`. Each setting may be left out. A file in any format that serde reads holds them under
/// these names; the environment under the same names in capitals, with `TOLLGATE_` in front:
///
/// | name | value | in the place of nothing |
/// |---|---|---|
/// | `limit` | quotas: `100/minute`, `10/second; 1000/hour`; in a file also a list | an error of [`policies`](Self::policies) |
/// | `algorithm` | `token-bucket`, `leaky-bucket`, `gcra`, `fixed-window`, `sliding-window`, `sliding-log` | `token-bucket` |
/// | `prefix` | text in front of the keys, for applications that share a store | [`Policies::DEFAULT_PREFIX`] |
/// | `headers` | `x-ratelimit` and `ratelimit`, with a comma between, or `none`; in a file also a list | both |
/// | `trusted_proxies` | networks with commas between, or `none`; in a file also a list | `none` |
/// | `trusted_hops` | how many proxies stand in front, in the place of `trusted_proxies` | |
/// | `forwarded_header` | the header that the proxies write: `X-Forwarded-For` or `Forwarded` | `X-Forwarded-For` |
/// | `ipv6_prefix` | bits of an IPv6 address that name a client, 32 to 128 | `64` |
/// | `failure_mode` | `open`, `closed` or `fallback` | `open` |
/// | `timeout` | how long the store may take: `100ms`, `1s`, between `1ms` and `1h` | [`timeout`](Self::timeout) is `None` |
///
/// Unknown names and bad values are errors that say what would be right; nothing is passed over.
///
/// ```
/// use tollgate_axum::Settings;
///
/// let file: Settings = toml::from_str(
///     r#"
///         limit = "100/minute"
///         trusted_proxies = ["10.0.0.0/8"]
///         timeout = "100ms"
///     "#,
/// )?;
/// let environment = Settings::from_vars([("TOLLGATE_LIMIT", "20/second")])?;
///
/// let settings = environment.or(file);
/// assert_eq!(settings.policies()?.iter().next().unwrap().to_string(), "default: token-bucket 20/second");
/// assert_eq!(settings.timeout(), Some(std::time::Duration::from_millis(100)));
/// let by_client = settings.key()?;
/// # let _ = by_client;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Settings(Fields);

impl Settings {
    /// These settings, and those of `base` where these leave one out.
    ///
    /// The environment in front of a file is `Settings::from_env()?.or(file)`. `trusted_proxies` and `trusted_hops` are
    /// one choice: either of them here puts both of `base` out of force.
    #[must_use]
    pub fn or(self, base: Self) -> Self {
        let (over, mut base) = (self.0, base.0);
        if over.trusted_proxies.is_some() || over.trusted_hops.is_some() {
            base.trusted_proxies = None;
            base.trusted_hops = None;
        }
        Self(Fields {
            limit: over.limit.or(base.limit),
            algorithm: over.algorithm.or(base.algorithm),
            prefix: over.prefix.or(base.prefix),
            headers: over.headers.or(base.headers),
            trusted_proxies: over.trusted_proxies.or(base.trusted_proxies),
            trusted_hops: over.trusted_hops.or(base.trusted_hops),
            forwarded_header: over.forwarded_header.or(base.forwarded_header),
            ipv6_prefix: over.ipv6_prefix.or(base.ipv6_prefix),
            failure_mode: over.failure_mode.or(base.failure_mode),
            timeout: over.timeout.or(base.timeout),
        })
    }

    /// The limit: one policy per quota, named `default`, `default-2`, `default-3` and so on.
    ///
    /// The names stay as they are when a quota changes, and so do the counts.
    ///
    /// # Errors
    /// [`SettingsError::NoLimit`] without a limit, and [`SettingsError::Policies`] for a burst with an algorithm that has
    /// none or for more quotas than a limiter holds.
    pub fn policies(&self) -> Result<Policies, SettingsError> {
        let limit = self.0.limit.as_ref().ok_or(SettingsError::NoLimit)?;
        let algorithm = self
            .0
            .algorithm
            .unwrap_or_else(|| Policy::from(limit.as_slice()[0]).algorithm());
        let policies = (1..).zip(limit).map(|(number, quota)| {
            let name = match number {
                1 => Policy::DEFAULT_NAME.to_owned(),
                _ => format!("{}-{number}", Policy::DEFAULT_NAME),
            };
            Policy::new(&name, algorithm, *quota)
        });
        let policies = Policies::new(policies.collect::<tollgate_core::Result<Vec<_>>>()?)?;
        Ok(match &self.0.prefix {
            Some(prefix) => policies.prefix(prefix),
            None => policies,
        })
    }

    /// Who is limited: clients by their address, behind the trusted proxies where there are some.
    ///
    /// # Errors
    /// [`SettingsError::HeaderWithoutProxies`] for a `forwarded_header` that nobody is trusted to write.
    pub fn key(&self) -> Result<ForwardedAddress, SettingsError> {
        let fields = &self.0;
        let trusts_none = fields.trusted_proxies.is_none() && fields.trusted_hops.is_none();
        if let (true, Some(header)) = (trusts_none, fields.forwarded_header) {
            return Err(SettingsError::HeaderWithoutProxies(header));
        }
        let key = match fields.trusted_hops {
            Some(hops) => ForwardedAddress::over(hops),
            None => ForwardedAddress::behind(fields.trusted_proxies.clone().unwrap_or_default()),
        };
        Ok(key
            .header(fields.forwarded_header.unwrap_or_default())
            .ipv6_prefix(fields.ipv6_prefix.unwrap_or_default()))
    }

    /// Which headers responses carry; both families where it is left out.
    #[must_use]
    pub fn headers(&self) -> Headers {
        match self.0.headers {
            None => Headers::default(),
            Some(families) => Headers::none()
                .x_rate_limit(families.x_rate_limit)
                .rate_limit(families.rate_limit),
        }
    }

    /// What a limiter answers when its store cannot; [`FailureMode::Open`] where it is left out.
    #[must_use]
    pub fn failure_mode(&self) -> FailureMode {
        self.0.failure_mode.unwrap_or_default()
    }

    /// How long the store may take, for the `Timeout` of `tollgate-layers`; `None` where it is left out.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.timeout.map(Duration::from)
    }
}

impl TryFrom<Fields> for Settings {
    type Error = SettingsError;

    fn try_from(fields: Fields) -> Result<Self, SettingsError> {
        if fields.trusted_proxies.is_some() && fields.trusted_hops.is_some() {
            return Err(SettingsError::ProxiesAndHops);
        }
        Ok(Self(fields))
    }
}

impl From<Settings> for Fields {
    fn from(settings: Settings) -> Self {
        settings.0
    }
}

/// Runs the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/settings.md")]
struct Guide;
