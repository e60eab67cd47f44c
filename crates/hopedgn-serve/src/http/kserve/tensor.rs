//! Tensors of requests: elements as JSON, or as little-endian bytes.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, SeqAccess, Visitor};

/// Types that the elements of an input may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Datatype {
    /// Text, in UTF-8.
    Bytes,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Fp64,
}

impl Datatype {
    /// The types of ids of nodes.
    pub(super) const OF_IDS: [Self; 5] = [Self::Bytes, Self::Int64, Self::Uint64, Self::Int32, Self::Uint32];
    /// The types of times.
    pub(super) const OF_TIMES: [Self; 5] = [Self::Fp64, Self::Int64, Self::Uint64, Self::Int32, Self::Uint32];

    /// The name that the protocol has for it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "BYTES",
            Self::Int32 => "INT32",
            Self::Int64 => "INT64",
            Self::Uint32 => "UINT32",
            Self::Uint64 => "UINT64",
            Self::Fp64 => "FP64",
        }
    }

    /// The elements of a tensor with `n` of them.
    pub(super) fn decode(self, n: usize, bytes: &[u8]) -> Result<Vec<Element>, String> {
        match self {
            Self::Bytes => texts(n, bytes),
            Self::Int32 => fixed(n, bytes, |bytes| Element::Integer(i32::from_le_bytes(bytes).into())),
            Self::Int64 => fixed(n, bytes, |bytes| Element::Integer(i64::from_le_bytes(bytes).into())),
            Self::Uint32 => fixed(n, bytes, |bytes| Element::Integer(u32::from_le_bytes(bytes).into())),
            Self::Uint64 => fixed(n, bytes, |bytes| Element::Integer(u64::from_le_bytes(bytes).into())),
            Self::Fp64 => fixed(n, bytes, |bytes| Element::Float(f64::from_le_bytes(bytes))),
        }
    }

    /// Elements that came as JSON, which has no such types.
    pub(super) fn check(self, n: usize, Elements(elements): Elements) -> Result<Vec<Element>, String> {
        if elements.len() != n {
            return Err(format!("found {} elements, expected {n} by its shape", elements.len()));
        }
        let element = |(at, element): (usize, Element)| {
            let fits = match (self, &element) {
                (Self::Bytes, Element::Text(_)) | (Self::Fp64, Element::Float(_)) => true,
                (Self::Int32, Element::Integer(number)) => i32::try_from(*number).is_ok(),
                (Self::Int64, Element::Integer(number)) => i64::try_from(*number).is_ok(),
                (Self::Uint32, Element::Integer(number)) => u32::try_from(*number).is_ok(),
                (Self::Uint64, Element::Integer(number)) => u64::try_from(*number).is_ok(),
                (Self::Fp64, Element::Integer(number)) => return Ok(Element::Float(*number as f64)),
                _ => false,
            };
            if fits { Ok(element) } else { Err(format!("element {at}: found {element}, expected {}", self.name())) }
        };
        elements.into_iter().enumerate().map(element).collect()
    }
}

/// An element of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Element {
    Text(String),
    /// Of 64 bits at most, with a sign or without.
    Integer(i128),
    Float(f64),
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
        }
    }
}

fn fixed<const N: usize>(n: usize, bytes: &[u8], element: impl Fn([u8; N]) -> Element) -> Result<Vec<Element>, String> {
    let (elements, rest) = bytes.as_chunks::<N>();
    if elements.len() != n || !rest.is_empty() {
        return Err(format!("found {} bytes, expected {n} times {N} by its shape and type", bytes.len()));
    }
    Ok(elements.iter().map(|bytes| element(*bytes)).collect())
}

/// Each with its length before it.
fn texts(n: usize, mut bytes: &[u8]) -> Result<Vec<Element>, String> {
    let mut all = Vec::new();
    for at in 0..n {
        let cut =
            || format!("element {at}: found {} bytes, expected a length of 4 bytes and as many bytes", bytes.len());
        let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok();
        let (text, rest) = length.and_then(|length| rest.split_at_checked(length)).ok_or_else(cut)?;
        let text = str::from_utf8(text).map_err(|error| format!("element {at}: found {error}, expected UTF-8"))?;
        all.push(Element::Text(text.to_owned()));
        bytes = rest;
    }
    if bytes.is_empty() {
        Ok(all)
    } else {
        Err(format!("found {} bytes after {n} elements, expected none", bytes.len()))
    }
}

/// The elements of a JSON array in row-major order; arrays may be nested.
#[derive(Debug, Default)]
pub(super) struct Elements(pub(super) Vec<Element>);

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut elements = Vec::new();
        deserializer.deserialize_seq(Flat(&mut elements))?;
        Ok(Self(elements))
    }
}

/// Puts what it visits at the end.
struct Flat<'a>(&'a mut Vec<Element>);

impl<'de> DeserializeSeed<'de> for Flat<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Flat<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of numbers or text")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(Flat(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.push(Element::Text(text.to_owned()));
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.0.push(Element::Integer(number.into()));
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.0.push(Element::Integer(number.into()));
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.0.push(Element::Float(number));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
