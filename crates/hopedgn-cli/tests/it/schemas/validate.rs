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
            if !self.holds(keyword, rule, schema, value, at, found) {
                let shown: String = value.to_string().chars().take(60).collect();
                found.push(format!("{at}: {shown} violates {keyword} {rule}"));
            }
        }
    }

    /// Whether one keyword holds; errors inside of the value are added to `found`.
    fn holds(
        &self,
        keyword: &str,
        rule: &'a Value,
        schema: &'a Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) -> bool {
        let size = |bound: &Value| bound.as_u64().and_then(|bound| usize::try_from(bound).ok()).expect("a size");
        let number = |bound: &Value| bound.as_f64().expect("a number");
        match keyword {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                self.check(self.definition(rule), value, at, found);
                true
            }
            "type" => match rule {
                Value::Array(names) => names.iter().any(|name| is_type(value, name)),
                name => is_type(value, name),
            },
            "enum" => list(rule).contains(value),
            "const" => rule == value,
            "anyOf" => list(rule).iter().any(|one| {
                let mut inner = Vec::new();
                self.check(one, value, at, &mut inner);
                inner.is_empty()
            }),
            "minimum" => value.as_f64().is_none_or(|value| value >= number(rule)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(rule)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= size(rule)),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= size(rule)),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= size(rule)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= size(rule)),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            "required" => {
                let missing = |name: &&Value| value.is_object() && value.get(name.as_str().expect("a name")).is_none();
                for name in list(rule).iter().filter(missing) {
                    found.push(format!("{at}: no field {name}"));
                }
                true
            }
            "properties" => {
                for (name, inner) in rule.as_object().expect("a map") {
                    if let Some(field) = value.get(name) {
                        self.check(inner, field, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                let is_listed = |name: &str| schema["properties"].get(name).is_some();
                for (name, field) in value.as_object().into_iter().flatten().filter(|(name, _)| !is_listed(name)) {
                    self.check(rule, field, &format!("{at}.{name}"), found);
                }
                true
            }
            other => panic!("{other} is not among the keywords that are checked here"),
        }
    }

    fn describe(&self, schema: &'a Value, value: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(target) = schema.get("$ref") {
            self.describe(self.definition(target), value, at, found);
        }
        if let Some(choices) = schema.get("anyOf") {
            let fits = |choice: &&Value| {
                let mut inner = Vec::new();
                self.check(choice, value, at, &mut inner);
                inner.is_empty()
            };
            list(choices).iter().find(fits).into_iter().for_each(|choice| self.describe(choice, value, at, found));
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
        let pointer = target.as_str().and_then(|target| target.strip_prefix('#')).expect("a reference within the file");
        self.root.pointer(pointer).unwrap_or_else(|| panic!("{target} does not exist"))
    }
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

fn is_type(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a name") {
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
