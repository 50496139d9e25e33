//! Golden vectors: stories with every answer worked out by hand, kept as data.

mod files;
mod offset;
mod play;
mod vector;

use std::sync::Arc;

use crate::case::{Case, Family};
use crate::golden::vector::Vector;

pub(crate) fn cases() -> Vec<Case> {
    files::vectors()
        .into_iter()
        .map(|vector: Vector| {
            let name = vector.name.clone();
            let vector = Arc::new(vector);
            Case::new(Family::Golden, name, move |bed| {
                let vector = Arc::clone(&vector);
                async move { play::play(&bed, &vector).await }
            })
        })
        .collect()
}
