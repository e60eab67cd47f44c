//! As much of JSON Schema (draft 2020-12) as the files in `docs/schemas` use. A keyword that is not among it is a panic, so that no
//! schema says what is not checked.
//!
//! The crate `jsonschema` would bring 36 others, a minute of building, for the same answers.

use serde_json::Value;

/// What is wrong with `document`, each with its place.
pub(super) fn errors(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Validator { root: schema }.check(schema, document, "", &mut found);
    found
}

/// Fields of `document` that `schema` does not describe, each with its place. They are allowed, but not in our own output.
pub(super) fn undescribed(schema: &Value, document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Validator { root: schema }.describe(schema, document, "", &mut found);
    found
}

struct Validator<'a> {
    root: &'a Value,
}

impl<'a> Validator<'a> {
    fn check(&self, schema: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().unwrap_or_else(|| panic!("{schema} is no schema")) {
            match keyword.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" => {}
                "$ref" => self.check(self.definition(rule), value, at, found),
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(rule, item, &format!("{at}[{index}]"), found);
                    }
                }
                "required" => {
                    let is_missing = |name: &&Value| value.is_object() && value.get(text(name)).is_none();
                    let missing = list(rule).iter().filter(is_missing);
                    found.extend(missing.map(|name| format!("{at}: no field {name}")));
                }
                "properties" => {
                    for (name, inner) in rule.as_object().expect("a map") {
                        if let Some(field) = value.get(name) {
                            self.check(inner, field, &format!("{at}.{name}"), found);
                        }
                    }
                }
                "additionalProperties" => {
                    let is_listed = |name: &str| schema["properties"].get(name).is_some();
                    for (name, field) in value.as_object().into_iter().flatten().filter(|(name, _)| !is_listed(name)) {
                        self.check(rule, field, &format!("{at}.{name}"), found);
                    }
                }
                "anyOf" if list(rule).iter().any(|choice| self.fits(choice, value)) => {}
                keyword if keyword != "anyOf" && holds(keyword, rule, value) => {}
                keyword => {
                    let shown: String = value.to_string().chars().take(60).collect();
                    found.push(format!("{at}: {shown} violates {keyword} {rule}"));
                }
            }
        }
    }

    fn fits(&self, schema: &'a Value, value: &Value) -> bool {
        let mut found = Vec::new();
        self.check(schema, value, "", &mut found);
        found.is_empty()
    }

    fn describe(&self, schema: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(target) = schema.get("$ref") {
            self.describe(self.definition(target), value, at, found);
        }
        let choices = schema.get("anyOf").into_iter().flat_map(list);
        if let Some(choice) = choices.into_iter().find(|choice| self.fits(choice, value)) {
            self.describe(choice, value, at, found);
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            if let Some(items) = schema.get("items") {
                self.describe(items, item, &format!("{at}[{index}]"), found);
            }
        }
        for (name, field) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{name}");
            match (schema.get("properties").map(|all| all.get(name)), schema.get("additionalProperties")) {
                (Some(Some(inner)), _) | (_, Some(inner)) => self.describe(inner, field, &at, found),
                (Some(None), None) => found.push(at),
                // An object of which the schema says nothing is open.
                (None, None) => {}
            }
        }
    }

    /// The schema that `#/$defs/NAME` refers to.
    fn definition(&self, target: &Value) -> &'a Value {
        let pointer = text(target).strip_prefix('#').expect("a reference within the file");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{target} does not exist"))
    }
}

/// Whether a keyword about the value itself, not about its parts, holds.
fn holds(keyword: &str, rule: &Value, value: &Value) -> bool {
    let size = || rule.as_u64().and_then(|bound| usize::try_from(bound).ok()).expect("a size");
    let bound = || rule.as_f64().expect("a number");
    match keyword {
        "type" => match rule {
            Value::Array(names) => names.iter().any(|name| is_type(value, name)),
            name => is_type(value, name),
        },
        "enum" => list(rule).contains(value),
        "const" => rule == value,
        "minimum" => value.as_f64().is_none_or(|value| value >= bound()),
        "maximum" => value.as_f64().is_none_or(|value| value <= bound()),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= size()),
        "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= size()),
        "minItems" => value.as_array().is_none_or(|items| items.len() >= size()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() <= size()),
        other => panic!("{other} is not among the keywords that are checked here"),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn is_type(value: &Value, name: &Value) -> bool {
    match text(name) {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    }
}

#[test]
fn every_keyword_accepts_and_refuses() {
    use serde_json::json;
    let definitions = json!({ "small": { "type": "integer", "maximum": 9 } });
    for (schema, good, bad) in [
        (json!({ "type": ["integer", "null"] }), json!([1, null]), json!([1.5, "1"])),
        (json!({ "enum": ["a", null] }), json!(["a", null]), json!(["b"])),
        (json!({ "const": "met" }), json!(["met"]), json!([1])),
        (json!({ "anyOf": [{ "type": "null" }, { "minimum": 3 }] }), json!([null, 3]), json!([2])),
        (json!({ "minimum": 0, "maximum": 1 }), json!([0, 0.5, 1, "x"]), json!([-0.1, 1.1])),
        (json!({ "minLength": 2, "maxLength": 3 }), json!(["ab", "ééé"]), json!(["a", "abcd"])),
        (json!({ "minItems": 1, "maxItems": 2 }), json!([[1], [1, 2]]), json!([[], [1, 2, 3]])),
        (json!({ "items": { "type": "string" } }), json!([["a"], []]), json!([["a", 1]])),
        (json!({ "required": ["a"] }), json!([{ "a": 1, "b": 2 }]), json!([{ "b": 2 }])),
        (json!({ "properties": { "a": { "const": 1 } } }), json!([{ "a": 1, "b": 2 }, {}]), json!([{ "a": 2 }])),
        (json!({ "additionalProperties": { "type": "null" } }), json!([{ "a": null }]), json!([{ "a": 1 }])),
        (json!({ "$ref": "#/$defs/small" }), json!([9]), json!([10, "x"])),
    ] {
        let mut schema = schema;
        schema["$defs"] = definitions.clone();
        for value in list(&good) {
            assert_eq!(errors(&schema, value), Vec::<String>::new(), "{schema} accepts {value}");
        }
        for value in list(&bad) {
            assert!(!errors(&schema, value).is_empty(), "{schema} refuses {value}");
        }
    }
    let schema = json!({ "properties": { "a": { "type": "object" }, "b": { "properties": {} } } });
    let document = json!({ "a": { "open": 1 }, "b": { "x": 1 }, "c": 1 });
    assert_eq!(undescribed(&schema, &document), [".b.x", ".c"]);
}
