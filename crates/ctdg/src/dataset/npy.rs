//! NumPy's `.npy` matrices of floats or integers, as `f32` rows.
//!
//! Own code rather than a crate, because a damaged header must not decide how much memory is allocated.

use std::io::{Read, Write};
use std::path::Path;

use crate::dataset::source::{OnProgress, Source};
use crate::error::{Error, Place, Problem, Result};
use crate::event::Features;

/// Usual headers have about a hundred bytes; NumPy itself warns beyond this.
const MAX_HEADER_BYTES: usize = 10_000;

/// A matrix read from a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) rows: usize,
    pub(crate) width: usize,
    pub(crate) values: Vec<f32>,
}

impl Matrix {
    /// The matrix as features, or `None` if it has no columns.
    pub(crate) fn into_features(self) -> Result<Option<Features>> {
        if self.width == 0 { Ok(None) } else { Features::new(self.width, self.values).map(Some) }
    }
}

/// Reads a two-dimensional array; a one-dimensional one is a matrix of one column.
pub(crate) fn read(path: &Path, progress: OnProgress<'_>) -> Result<Matrix> {
    read_from(Source::open(path, progress)?)
}

pub(crate) fn read_from(mut source: Source<'_>) -> Result<Matrix> {
    let path = source.path().to_path_buf();
    let compression = source.compression();
    let corrupt =
        |detail: &str| Error::at(Place::file(&path), Problem::Corrupt { format: "npy", detail: detail.into() });
    let explain = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof if compression == super::source::Compression::None => {
            Error::at(Place::file(&path), Problem::Truncated { format: "npy" })
        }
        _ => Source::explain(&path, compression, error),
    };

    let mut start = [0; 8];
    source.read_exact(&mut start).map_err(explain)?;
    let [magic @ .., major, _minor] = start;
    if magic != *b"\x93NUMPY" {
        let problem =
            Problem::WrongFormat { found: "another kind of file".into(), expected: "a NumPy .npy file".into() };
        return Err(Error::at(Place::file(&path), problem));
    }
    let mut length = [0; 4];
    source.read_exact(&mut length[..if major == 1 { 2 } else { 4 }]).map_err(explain)?;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_HEADER_BYTES {
        return Err(corrupt("its header is too long"));
    }
    let mut header = vec![0; length];
    source.read_exact(&mut header).map_err(explain)?;
    let header = std::str::from_utf8(&header).map_err(|_| corrupt("its header is not text"))?;
    let header = Header::parse(header).ok_or_else(|| corrupt("its header cannot be read"))?;
    let (rows, width) = match header.shape[..] {
        [rows] => (rows, 1),
        [rows, width] => (rows, width),
        _ => return Err(corrupt("it has neither one nor two dimensions")),
    };
    if header.fortran_order && width > 1 {
        let problem = Problem::WrongType { found: "a column-major array".into(), expected: "a row-major one" };
        return Err(Error::at(Place::file(&path), problem));
    }
    let Some(decode) = decoder(&header.descr) else {
        let problem = Problem::WrongType { found: header.descr, expected: "little-endian floats or integers" };
        return Err(Error::at(Place::file(&path), problem));
    };
    let n = rows.checked_mul(width).ok_or_else(|| corrupt("its shape overflows"))?;

    // Memory grows with the data read, never with the size stated in the header.
    let mut values = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    let size = decode.size;
    while values.len() < n {
        let want = (n - values.len()).saturating_mul(size).min(buffer.len() / size * size);
        source.read_exact(&mut buffer[..want]).map_err(explain)?;
        values.extend(buffer[..want].chunks_exact(size).map(decode.value));
    }
    if source.read(&mut buffer[..1]).map_err(explain)? > 0 {
        return Err(corrupt("more values than its shape says"));
    }
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        let place = Place::file(&path).row((index / width) as u64);
        return Err(Error::at(place, Problem::NonFiniteValue { found: values[index].to_string() }));
    }
    values.shrink_to_fit();
    Ok(Matrix { rows, width, values })
}

/// Writes a row-major `f32` matrix, format version 1.0.
pub(crate) fn write(out: &mut dyn Write, features: &Features) -> std::io::Result<()> {
    write_header(out, "<f4", features.n_rows(), features.width())?;
    for block in features.values().chunks(1 << 14) {
        let bytes: Vec<u8> = block.iter().flat_map(|value| value.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes what stands before the values of a row-major matrix of the NumPy type `descr`.
pub(crate) fn write_header(out: &mut dyn Write, descr: &str, rows: usize, width: usize) -> std::io::Result<()> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let unpadded = 10 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&u16::try_from(header.len()).expect("a short header").to_le_bytes())?;
    out.write_all(header.as_bytes())
}

struct Decoder {
    size: usize,
    value: fn(&[u8]) -> f32,
}

/// How one element of NumPy type `descr` becomes an `f32`.
#[expect(clippy::cast_possible_truncation, reason = "features are f32 whatever the file holds")]
fn decoder(descr: &str) -> Option<Decoder> {
    macro_rules! decoder {
        ($type:ty) => {
            Some(Decoder {
                size: size_of::<$type>(),
                value: |bytes| <$type>::from_le_bytes(bytes.try_into().expect("chunks of that size")) as f32,
            })
        };
    }
    match descr {
        "<f4" => decoder!(f32),
        "<f8" => decoder!(f64),
        "<i4" => decoder!(i32),
        "<i8" => decoder!(i64),
        _ => None,
    }
}

struct Header {
    descr: String,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Header {
    /// Reads the three entries of the dictionary, in any order.
    fn parse(text: &str) -> Option<Self> {
        let value_of = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}'"))?;
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = value_of("descr")?.strip_prefix('\'')?.split_once('\'')?.0.to_owned();
        let fortran_order = value_of("fortran_order")?.starts_with("True");
        let (shape, _) = value_of("shape")?.strip_prefix('(')?.split_once(')')?;
        let lengths = shape.split(',').map(str::trim).filter(|length| !length.is_empty());
        let shape = lengths.map(|length| length.parse().ok()).collect::<Option<_>>()?;
        Some(Self { descr, fortran_order, shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_matrix_is_read_back() {
        let features = Features::new(3, vec![1.0, -2.5, 3.0, 0.0, 5.5, -6.0]).unwrap();
        let mut bytes = Vec::new();
        write(&mut bytes, &features).unwrap();
        assert_eq!((bytes.len() - 24) % 64, 0, "NumPy aligns the values to 64 bytes");
        let matrix = read_from(Source::new(Path::new("x.npy"), &bytes[..]).unwrap()).unwrap();
        assert_eq!((matrix.rows, matrix.width), (2, 3));
        assert_eq!(matrix.into_features().unwrap(), Some(features));
    }

    #[test]
    fn oversized_shape_in_header_allocates_no_memory() {
        let mut bytes = b"\x93NUMPY\x01\x00\x50\x00".to_vec();
        let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 99999999), }";
        bytes.extend(format!("{header:<79}\n").bytes());
        let error = read_from(Source::new(Path::new("x.npy"), &bytes[..]).unwrap()).unwrap_err();
        assert!(matches!(error.problem(), Problem::Truncated { .. }), "{error}");
    }
}
