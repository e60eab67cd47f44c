use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const ALL: [Datatype; 6] =
    [Datatype::Bytes, Datatype::Int32, Datatype::Int64, Datatype::Uint32, Datatype::Uint64, Datatype::Fp64];

/// A type and elements that have it.
fn tensors() -> impl Strategy<Value = (Datatype, Vec<Element>)> {
    let integers = |datatype, range: std::ops::RangeInclusive<i128>| {
        vec(range.prop_map(Element::Integer), 0..20).prop_map(move |elements| (datatype, elements))
    };
    prop_oneof![
        vec(".{0,9}".prop_map(Element::Text), 0..20).prop_map(|elements| (Datatype::Bytes, elements)),
        integers(Datatype::Int32, i32::MIN.into()..=i32::MAX.into()),
        integers(Datatype::Int64, i64::MIN.into()..=i64::MAX.into()),
        integers(Datatype::Uint32, 0..=u32::MAX.into()),
        integers(Datatype::Uint64, 0..=u64::MAX.into()),
        vec(prop::num::f64::NORMAL.prop_map(Element::Float), 0..20).prop_map(|elements| (Datatype::Fp64, elements)),
    ]
}

/// What a client sends.
fn encoded(datatype: Datatype, elements: &[Element]) -> Vec<u8> {
    let bytes = |element: &Element| match (datatype, element) {
        (Datatype::Bytes, Element::Text(text)) => {
            [&u32::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat()
        }
        (Datatype::Int32 | Datatype::Uint32, Element::Integer(number)) => number.to_le_bytes()[..4].to_vec(),
        (Datatype::Int64 | Datatype::Uint64, Element::Integer(number)) => number.to_le_bytes()[..8].to_vec(),
        (Datatype::Fp64, Element::Float(number)) => number.to_le_bytes().to_vec(),
        _ => unreachable!("{element} is no {}", datatype.name()),
    };
    elements.iter().flat_map(bytes).collect()
}

fn json_of(element: &Element) -> Value {
    match element {
        Element::Text(text) => json!(text),
        Element::Integer(number) => {
            i64::try_from(*number).map_or_else(|_| json!(u64::try_from(*number).unwrap()), |number| json!(number))
        }
        Element::Float(number) => json!(number),
    }
}

proptest! {
    #[test]
    fn tensors_are_read_back_as_they_were_written((datatype, elements) in tensors(), nested in any::<bool>()) {
        let n = elements.len();
        prop_assert_eq!(datatype.decode(n, &encoded(datatype, &elements)), Ok(elements.clone()));
        let data = elements.iter().map(|element| if nested { json!([json_of(element)]) } else { json_of(element) });
        let data = Value::Array(data.collect()).to_string();
        prop_assert_eq!(datatype.check(n, serde_json::from_str(&data).unwrap()), Ok(elements));
    }

    #[test]
    fn any_bytes_are_an_error_or_what_they_encode(bytes in vec(0_u8..8, 0..64), n in 0_usize..20) {
        for datatype in ALL {
            if let Ok(elements) = datatype.decode(n, &bytes) {
                prop_assert_eq!(elements.len(), n);
                prop_assert_eq!(encoded(datatype, &elements), &*bytes);
            }
        }
    }

    #[test]
    fn bytes_that_do_not_fit_the_shape_are_refused((datatype, elements) in tensors(), more in vec(0_u8..8, 1..9)) {
        let (n, bytes) = (elements.len(), encoded(datatype, &elements));
        prop_assert!(datatype.decode(n, &[&*bytes, &*more].concat()).is_err());
        prop_assert!(datatype.decode(n + 1, &bytes).is_err());
        prop_assert!(datatype.decode(usize::MAX, &bytes).is_err());
        if n > 0 {
            prop_assert!(datatype.decode(n, &bytes[..bytes.len() - 1]).is_err());
        }
    }
}

#[test]
fn errors_say_what_was_found_and_expected() {
    let json = |datatype: Datatype, n, data: &str| datatype.check(n, serde_json::from_str(data).unwrap()).unwrap_err();
    assert_eq!(json(Datatype::Bytes, 2, r#"["a"]"#), "found 1 elements, expected 2 by its shape");
    assert_eq!(json(Datatype::Bytes, 2, r#"["a", 7]"#), "element 1: found 7, expected BYTES");
    assert_eq!(json(Datatype::Int64, 1, "[1.5]"), "element 0: found 1.5, expected INT64");
    assert_eq!(json(Datatype::Int32, 1, "[2147483648]"), "element 0: found 2147483648, expected INT32");
    assert_eq!(json(Datatype::Uint64, 1, "[-1]"), "element 0: found -1, expected UINT64");
    assert_eq!(json(Datatype::Fp64, 1, r#"["a"]"#), r#"element 0: found "a", expected FP64"#);
    let binary = |datatype: Datatype, n, bytes: &[u8]| datatype.decode(n, bytes).unwrap_err();
    assert_eq!(binary(Datatype::Int64, 2, &[0; 9]), "found 9 bytes, expected 2 times 8 by its shape and type");
    let cut = "element 1: found 3 bytes, expected a length of 4 bytes and as many bytes";
    assert_eq!(binary(Datatype::Bytes, 2, &[0; 7]), cut);
    assert_eq!(binary(Datatype::Bytes, 1, &[0; 7]), "found 3 bytes after 1 elements, expected none");
    let invalid = binary(Datatype::Bytes, 1, &[1, 0, 0, 0, 255]);
    assert_eq!(invalid, "element 0: found invalid utf-8 sequence of 1 bytes from index 0, expected UTF-8");
    for data in ["7", "null", "[null]", "[true]", r#"[{"a": 1}]"#] {
        assert!(serde_json::from_str::<Elements>(data).is_err(), "{data}");
    }
}
