//! `TensorBoard` event files: scalars as protocol-buffer `Event` messages in `TFRecord` frames.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::metrics::EpochRecord;

/// Appends epochs to an event file.
///
/// `TensorBoard` finds files by names such as `events.out.tfevents.1700000000.hopedgn`.
///
/// ```
/// # use hopedgn::{Events, LinkPredictor};
/// # let messages = (0..100).map(|i| ((i % 10).to_string(), ((i + 1) % 10).to_string(), f64::from(i)));
/// # let events = Events::from_tuples(messages)?;
/// # let predictor = LinkPredictor::builder().set("model.d-channel=4").set("model.length=4").epochs(1).fit(&events)?;
/// use hopedgn::callbacks::tensorboard::EventWriter;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("events.out.tfevents.0.mine");
/// let mut writer = EventWriter::create(&path, 0.0, &[])?;
/// let empty = path.metadata()?.len();
/// writer.epoch(1.0, &predictor.history()[0])?;
/// assert!(path.metadata()?.len() > empty);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: File,
}

impl EventWriter {
    /// Replaces the file by one with `history`. `wall_time` is in seconds since 1970.
    pub fn create(path: &Path, wall_time: f64, history: &[EpochRecord]) -> Result<Self> {
        let mut bytes = frame(&version(wall_time));
        for record in history {
            bytes.extend(frame(&scalars(wall_time, record)));
        }
        ctdg::dataset::write_file(path, bytes)?;
        let file = File::options().append(true).open(path).map_err(|error| ctdg::Error::io(path, "write", error))?;
        Ok(Self { path: path.to_path_buf(), file })
    }

    /// Appends one epoch and flushes the file.
    pub fn epoch(&mut self, wall_time: f64, record: &EpochRecord) -> Result<()> {
        let bytes = frame(&scalars(wall_time, record));
        let written = self.file.write_all(&bytes).and_then(|()| self.file.flush());
        Ok(written.map_err(|error| ctdg::Error::io(&self.path, "write", error))?)
    }
}

/// The first event of every file.
fn version(wall_time: f64) -> Vec<u8> {
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    block(&mut event, 3, b"brain.Event:2");
    event
}

fn scalars(wall_time: f64, record: &EpochRecord) -> Vec<u8> {
    let (all, new) = (record.val.transductive, record.val.inductive);
    let values = [
        ("loss/train", Some(record.loss)),
        ("val/ap", all.map(|metrics| metrics.ap)),
        ("val/auc", all.map(|metrics| metrics.auc)),
        ("val/inductive_ap", new.map(|metrics| metrics.ap)),
        ("val/inductive_auc", new.map(|metrics| metrics.auc)),
        ("val/mrr", record.val_mrr),
        ("speed/pairs_per_second", Some(record.pairs_per_second)),
    ];
    let mut summary = Vec::new();
    for (tag, value) in values {
        let Some(value) = value else { continue };
        let mut scalar = Vec::new();
        block(&mut scalar, 1, tag.as_bytes());
        #[expect(clippy::cast_possible_truncation, reason = "the format's scalars are f32")]
        float(&mut scalar, 2, value as f32);
        block(&mut summary, 1, &scalar);
    }
    let mut event = Vec::new();
    double(&mut event, 1, wall_time);
    key(&mut event, 2, 0);
    varint(&mut event, record.epoch as u64);
    block(&mut event, 5, &summary);
    event
}

// Protocol buffers: each field is a key (field number and wire type) and a value.

fn key(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

/// Seven bits a byte, lowest first; the eighth bit is set on all bytes but the last.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    key(out, field, 1);
    out.extend(value.to_le_bytes());
}

fn float(out: &mut Vec<u8>, field: u64, value: f32) {
    key(out, field, 5);
    out.extend(value.to_le_bytes());
}

/// A length-delimited field: text or a nested message.
fn block(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    key(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// `TFRecord`: length, checksum of the length, data, checksum of the data.
fn frame(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut out = Vec::with_capacity(data.len() + 16);
    out.extend(length);
    out.extend(masked_crc(&length).to_le_bytes());
    out.extend(data);
    out.extend(masked_crc(data).to_le_bytes());
    out
}

/// Masked, since checksums of data that contains checksums are weak.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, byte| (crc >> 8) ^ TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)])
}

/// CRC32C of each byte.
const TABLE: [u32; 256] = {
    /// Castagnoli's polynomial, bits reversed.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut table = [0; 256];
    let mut crc = 1;
    // CRCs are linear: the powers of two determine the rest.
    let mut power = 128;
    while power > 0 {
        crc = (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
        let mut below = 0;
        while below < 256 {
            table[power + below] = crc ^ table[below];
            below += 2 * power;
        }
        power >>= 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{LinkMetrics, PerSetting};

    fn record(epoch: usize, inductive: Option<LinkMetrics>) -> EpochRecord {
        let metrics = LinkMetrics { ap: 0.9, auc: 0.8, ap_global: 0.7, auc_global: 0.6 };
        EpochRecord {
            epoch,
            loss: 0.5 / epoch as f64,
            val: PerSetting { transductive: Some(metrics), inductive },
            val_historical: None,
            val_mrr: None,
            better: true,
            train_seconds: 1.0,
            eval_seconds: 1.0,
            pairs_per_second: 12_345.0,
        }
    }

    #[derive(Debug, Default, PartialEq)]
    struct Decoded {
        wall_time: f64,
        step: u64,
        version: String,
        scalars: Vec<(String, f32)>,
    }

    fn take<'a>(bytes: &mut &'a [u8], n: usize) -> &'a [u8] {
        let (head, tail) = bytes.split_at(n);
        *bytes = tail;
        head
    }

    fn number(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    /// (field, its bytes), for every wire type.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = number(&mut bytes);
            let value = match key & 7 {
                0 => number(&mut bytes).to_le_bytes().to_vec(),
                1 => take(&mut bytes, 8).to_vec(),
                2 => {
                    let length = number(&mut bytes);
                    take(&mut bytes, usize::try_from(length).unwrap()).to_vec()
                }
                5 => take(&mut bytes, 4).to_vec(),
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        fields
    }

    /// Bit by bit, without a table.
    fn slow_masked_crc(bytes: &[u8]) -> u32 {
        let mut crc = u32::MAX;
        for byte in bytes {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        (!crc).rotate_right(15).wrapping_add(0xa282_ead8)
    }

    fn decode(mut file: &[u8]) -> Vec<Decoded> {
        let mut events = Vec::new();
        while !file.is_empty() {
            let length = take(&mut file, 8);
            assert_eq!(take(&mut file, 4), slow_masked_crc(length).to_le_bytes());
            let data = take(&mut file, usize::try_from(u64::from_le_bytes(length.try_into().unwrap())).unwrap());
            assert_eq!(take(&mut file, 4), slow_masked_crc(data).to_le_bytes());
            let mut event = Decoded::default();
            for (field, value) in fields(data) {
                match field {
                    1 => event.wall_time = f64::from_le_bytes(value.try_into().unwrap()),
                    2 => event.step = u64::from_le_bytes(value.try_into().unwrap()),
                    3 => event.version = String::from_utf8(value).unwrap(),
                    5 => event.scalars = fields(&value).iter().map(|(_, value)| scalar(value)).collect(),
                    other => panic!("field {other}"),
                }
            }
            events.push(event);
        }
        events
    }

    fn scalar(bytes: &[u8]) -> (String, f32) {
        let fields = fields(bytes);
        let [(1, tag), (2, value)] = &fields[..] else { panic!("not a tag and a value: {fields:?}") };
        (String::from_utf8(tag.clone()).unwrap(), f32::from_le_bytes(value[..].try_into().unwrap()))
    }

    #[test]
    fn checksums_equal_known_crc32c_values() {
        // The usual check value, and RFC 3720's first example.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn a_file_holds_history_and_appended_epochs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.out.tfevents.1700000000.hopedgn");
        let metrics = LinkMetrics { ap: 0.4, auc: 0.3, ap_global: 0.2, auc_global: 0.1 };
        let mut writer = EventWriter::create(&path, 1.7e9, &[record(1, None)]).unwrap();
        writer.epoch(1.7e9 + 5.5, &record(300, Some(metrics))).unwrap();
        let events = decode(&std::fs::read(&path).unwrap());
        assert_eq!(events.len(), 3);
        assert_eq!((events[0].version.as_str(), events[0].wall_time), ("brain.Event:2", 1.7e9));
        assert_eq!((events[1].step, events[1].wall_time, events[1].scalars.len()), (1, 1.7e9, 4));
        assert_eq!((events[2].step, events[2].wall_time), (300, 1.7e9 + 5.5));
        let scalars: Vec<(&str, f32)> = events[2].scalars.iter().map(|(tag, value)| (tag.as_str(), *value)).collect();
        let expected = [
            ("loss/train", 0.5 / 300.0),
            ("val/ap", 0.9),
            ("val/auc", 0.8),
            ("val/inductive_ap", 0.4),
            ("val/inductive_auc", 0.3),
            ("speed/pairs_per_second", 12_345.0),
        ];
        assert_eq!(scalars, expected);
    }

    #[test]
    fn create_replaces_the_file_and_leaves_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events");
        let history = [record(1, None), record(2, None)];
        EventWriter::create(&path, 1.0, &history).unwrap().epoch(2.0, &record(3, None)).unwrap();
        drop(EventWriter::create(&path, 3.0, &history).unwrap());
        assert_eq!(decode(&std::fs::read(&path).unwrap()).len(), 3);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_error_of_a_missing_folder_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none").join("events");
        let error = EventWriter::create(&path, 0.0, &[]).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
