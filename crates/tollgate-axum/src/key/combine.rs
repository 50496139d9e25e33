//! Extractors made of extractors.

use http::request::Parts;

use super::{KeyExtractor, KeyResult, RequestKey};

/// The first of two extractors that finds an identity: see [`KeyExtractor::or`].
#[derive(Clone, Copy, Debug)]
pub struct Or<A, B> {
    first: A,
    second: B,
}

impl<A, B> Or<A, B> {
    pub(super) const fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: KeyExtractor, B: KeyExtractor> KeyExtractor for Or<A, B> {
    async fn extract(&self, parts: &Parts) -> KeyResult {
        match self.first.extract(parts).await? {
            Some(key) => Ok(Some(key)),
            None => self.second.extract(parts).await,
        }
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        match self.first.extract_now(parts)? {
            Ok(None) => self.second.extract_now(parts),
            answer => Some(answer),
        }
    }
}

/// Two identities as one: see [`KeyExtractor::and`].
#[derive(Clone, Copy, Debug)]
pub struct And<A, B> {
    first: A,
    second: B,
}

impl<A, B> And<A, B> {
    pub(super) const fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: KeyExtractor, B: KeyExtractor> KeyExtractor for And<A, B> {
    async fn extract(&self, parts: &Parts) -> KeyResult {
        let Some(first) = self.first.extract(parts).await? else {
            return Ok(None);
        };
        let second = self.second.extract(parts).await?;
        Ok(second.map(|second| RequestKey::pair(&first, &second)))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        let first = match self.first.extract_now(parts)? {
            Ok(Some(first)) => first,
            answer => return Some(answer),
        };
        let second = self.second.extract_now(parts)?;
        Some(second.map(|second| second.map(|second| RequestKey::pair(&first, &second))))
    }
}

/// An identity counted apart from those of other names: see [`KeyExtractor::named`].
#[derive(Clone, Copy, Debug)]
pub struct Named<E> {
    name: &'static str,
    extractor: E,
}

impl<E> Named<E> {
    pub(super) const fn new(name: &'static str, extractor: E) -> Self {
        Self { name, extractor }
    }
}

impl<E: KeyExtractor> KeyExtractor for Named<E> {
    async fn extract(&self, parts: &Parts) -> KeyResult {
        let key = self.extractor.extract(parts).await?;
        Ok(key.map(|key| RequestKey::named(self.name, &key)))
    }

    #[inline]
    fn extract_now(&self, parts: &Parts) -> Option<KeyResult> {
        let answer = self.extractor.extract_now(parts)?;
        Some(answer.map(|key| key.map(|key| RequestKey::named(self.name, &key))))
    }
}
