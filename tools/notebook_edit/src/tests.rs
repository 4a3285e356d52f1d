//! Edits of whole notebooks.

use super::*;

/// As Jupyter writes it, with what a careless rewrite would lose: an odd number, an escape,
/// a key of a later format.
const NOTEBOOK: &str = r#"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 7,
   "id": "aa",
   "metadata": {},
   "outputs": [
    {
     "x": 1.50e3
    }
   ],
   "source": [
    "a = 1\n",
    "a"
   ]
  },
  {
   "attachments": {},
   "cell_type": "markdown",
   "id": "bb",
   "metadata": {
    "later": true
   },
   "source": "one \u00e4"
  }
 ],
 "metadata": {
  "z": 1.50,
  "a": 12345678901234567890123
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"#;

fn run(text: &str, arguments: &str) -> Result<Edited, ToolError> {
    let json = format!(r#"{{"path":"n.ipynb",{arguments}}}"#);
    edit(&serde_json::from_str(&json).unwrap(), text)
}

/// Checks that an edit of the notebook above does these replacements in its text, no others.
fn check(arguments: &str, changes: &[(&str, &str)]) -> String {
    let mut wanted = NOTEBOOK.to_owned();
    for (from, to) in changes {
        assert_eq!(wanted.matches(from).count(), 1, "{from}");
        wanted = wanted.replace(from, to);
    }
    let done = run(NOTEBOOK, arguments).unwrap();
    assert_eq!(done.text, wanted);
    done.summary
}

const OUTPUTS: (&str, &str) =
    ("\"outputs\": [\n    {\n     \"x\": 1.50e3\n    }\n   ]", "\"outputs\": []");
const COUNT: (&str, &str) = ("\"execution_count\": 7", "\"execution_count\": null");

#[test]
fn a_replaced_code_cell_loses_its_outputs_and_nothing_else_changes() {
    let summary = check(
        r#""cell_id":"aa","new_source":"b = 2\n\nb\n""#,
        &[
            OUTPUTS,
            COUNT,
            ("\"a = 1\\n\",\n    \"a\"", "\"b = 2\\n\",\n    \"\\n\",\n    \"b\\n\""),
        ],
    );
    assert_eq!(summary, "replaced cell 0 `aa` (code); its outputs are removed");
}

#[test]
fn a_source_that_was_one_string_stays_one_and_other_fields_stay() {
    let summary =
        check(r#""cell_number":1,"new_source":"x\ny""#, &[("\"one \\u00e4\"", "\"x\\ny\"")]);
    assert_eq!(summary, "replaced cell 1 `bb` (markdown)");
}

#[test]
fn an_empty_source_has_no_lines() {
    check(
        r#""cell_number":0,"new_source":"""#,
        &[OUTPUTS, COUNT, ("[\n    \"a = 1\\n\",\n    \"a\"\n   ]", "[]")],
    );
}

#[test]
fn a_cell_of_another_type_has_the_fields_of_that_type() {
    check(
        r#""cell_id":"aa","new_source":"t","cell_type":"markdown""#,
        &[
            ("\"cell_type\": \"code\",\n   \"execution_count\": 7", "\"cell_type\": \"markdown\""),
            ("\"outputs\": [\n    {\n     \"x\": 1.50e3\n    }\n   ],\n   ", ""),
            ("\"a = 1\\n\",\n    \"a\"", "\"t\""),
        ],
    );
    check(
        r#""cell_id":"bb","new_source":"t","cell_type":"code""#,
        &[
            (
                "\"attachments\": {},\n   \"cell_type\": \"markdown\"",
                "\"cell_type\": \"code\",\n   \"execution_count\": null",
            ),
            ("\"later\": true\n   },", "\"later\": true\n   },\n   \"outputs\": [],"),
            ("\"one \\u00e4\"", "\"t\""),
        ],
    );
}

#[test]
fn a_cell_is_inserted_after_the_named_one_or_at_the_start() {
    let code = |id: &str| {
        format!(
            "  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\n   \
             \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"x\"\n   ]\n  }}"
        )
    };
    let id = |text: &str| {
        let notebook: serde_json::Value = serde_json::from_str(text).unwrap();
        let cells = notebook["cells"].as_array().unwrap();
        let new = cells.iter().find(|cell| cell["source"][0] == "x").unwrap();
        new["id"].as_str().unwrap().to_owned()
    };
    for (arguments, before, after, number) in [
        ("", "\"cells\": [\n", ",\n", 0),
        (r#","cell_id":"aa""#, "\n  },\n", ",\n", 1),
        (r#","cell_number":1"#, "\\u00e4\"\n  }", "\n", 2),
    ] {
        let arguments = format!(r#""edit_mode":"insert","new_source":"x"{arguments}"#);
        let done = run(NOTEBOOK, &arguments).unwrap();
        let id = id(&done.text);
        assert_eq!(done.summary, format!("inserted cell {number} `{id}` (code)"));
        let at = NOTEBOOK.find(before).unwrap() + before.len();
        let (head, tail) = NOTEBOOK.split_at(at);
        let wanted = match number {
            2 => format!("{head},\n{}{tail}", code(&id)),
            _ => format!("{head}{}{after}{tail}", code(&id)),
        };
        assert_eq!(done.text, wanted);
        assert!(id.len() == 8 && id != "aa" && id != "bb");
    }
}

#[test]
fn every_inserted_cell_gets_an_id_of_its_own_where_the_format_has_ids() {
    let insert = r#""edit_mode":"insert","cell_type":"raw","new_source":"x""#;
    let mut text = NOTEBOOK.to_owned();
    let mut summaries = std::collections::BTreeSet::new();
    for _ in 0..5 {
        let done = run(&text, insert).unwrap();
        summaries.insert(done.summary);
        text = done.text;
    }
    assert_eq!(summaries.len(), 5);
    let older = NOTEBOOK.replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
    let done = run(&older, insert).unwrap();
    assert_eq!(done.summary, "inserted cell 0 (raw)");
    assert!(done.text.starts_with(
        "{\n \"cells\": [\n  {\n   \"cell_type\": \"raw\",\n   \"metadata\": {},\n   \"source\": [\n    \
         \"x\"\n   ]\n  },\n  {"
    ));
}

#[test]
fn a_deleted_cell_takes_its_comma_along() {
    let first = &NOTEBOOK
        [NOTEBOOK.find("  {\n   \"cell").unwrap()..NOTEBOOK.find("  {\n   \"att").unwrap()];
    let summary = check(r#""edit_mode":"delete","cell_id":"aa""#, &[(first, "")]);
    assert_eq!(summary, "deleted cell 0 `aa` (code); 1 cells are left");
    let start = NOTEBOOK.find(",\n  {\n   \"att").unwrap();
    let second = &NOTEBOOK[start..NOTEBOOK.find("\n ],\n \"metadata\"").unwrap()];
    check(r#""edit_mode":"delete","cell_number":1,"new_source":"""#, &[(second, "")]);
}

#[test]
fn the_last_cell_can_go_and_a_first_one_come() {
    let one = r#"{"nbformat": 4, "nbformat_minor": 2, "cells": [ {"cell_type": "raw"} ]}"#;
    let none = r#"{"nbformat": 4, "nbformat_minor": 2, "cells": []}"#;
    assert_eq!(run(one, r#""edit_mode":"delete","cell_number":0"#).unwrap().text, none);
    let done =
        run(none, r#""edit_mode":"insert","new_source":"x","cell_type":"markdown""#).unwrap();
    let cell = "[\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": [\n    \
                \"x\"\n   ]\n  }\n ]";
    assert_eq!(done.text, none.replace("[]", cell));
}

#[test]
fn a_notebook_in_one_line_stays_in_one() {
    let one = r#"{"cells":[{"cell_type":"raw","source":"x"}],"nbformat":4,"nbformat_minor":2}"#;
    let done = run(one, r#""cell_number":0,"new_source":"y""#).unwrap();
    assert_eq!(done.text, one.replace("\"x\"", "\"y\""));
}

#[test]
fn a_cell_that_is_not_there_is_answered_with_those_that_are() {
    let list = "the cells are 0 `aa` (code), 1 `bb` (markdown)";
    for arguments in [r#""cell_id":"cc","new_source":"x""#, r#""cell_number":2,"new_source":"x""#] {
        assert!(matches!(run(NOTEBOOK, arguments), Err(ToolError::NotFound(text))
            if text == format!("there is no such cell; {list}")));
    }
    for (arguments, piece) in [
        (r#""new_source":"x""#, "name the cell by `cell_id` or `cell_number`"),
        (r#""edit_mode":"delete""#, "name the cell by `cell_id` or `cell_number`"),
        (r#""cell_id":"aa","cell_number":1,"new_source":"x""#, "not the same cell"),
        (r#""cell_id":"aa""#, "`new_source`"),
        (r#""edit_mode":"insert""#, "`new_source`"),
    ] {
        assert!(
            matches!(run(NOTEBOOK, arguments), Err(ToolError::InvalidArguments(text))
            if text.contains(piece)),
            "{arguments}"
        );
    }
    assert!(run(NOTEBOOK, r#""cell_id":"bb","cell_number":1,"new_source":"x""#).is_ok());
}

#[test]
fn a_long_list_of_cells_is_cut() {
    let cells = vec![r#"{"cell_type":"raw"}"#; 60].join(",");
    let text = format!(r#"{{"cells":[{cells}],"nbformat":4}}"#);
    assert!(matches!(run(&text, r#""edit_mode":"delete","cell_number":60"#),
        Err(ToolError::NotFound(text)) if text.ends_with("49 (raw) and 10 more")));
}

#[test]
fn what_is_not_a_notebook_is_refused_with_the_reason() {
    for (text, why) in [
        ("", "EOF"),
        ("x = 1", "expected value"),
        ("[]", "invalid"),
        (r#"{"cells": []}"#, "no `nbformat`"),
        (r#"{"nbformat": 4}"#, "no `cells`"),
        (r#"{"nbformat": 3, "worksheets": []}"#, "format 3"),
        (r#"{"nbformat": 4, "cells": {}}"#, "not a list"),
        (r#"{"nbformat": 4, "cells": [{"source": ""}]}"#, "cell 0: missing field `cell_type`"),
    ] {
        let error = run(text, r#""cell_number":0,"new_source":"x""#).unwrap_err();
        assert!(
            matches!(&error, ToolError::Failed(text)
            if text.contains("`n.ipynb` is not a notebook") && text.contains(why)),
            "{error:?}"
        );
    }
}

#[test]
fn the_number_of_cells_is_bounded() {
    let cells = vec!["0"; 20_001].join(",");
    let text = format!(r#"{{"cells":[{cells}],"nbformat":4}}"#);
    assert!(matches!(run(&text, r#""edit_mode":"delete","cell_number":0"#),
        Err(ToolError::Failed(text)) if text.contains("more than 20000 cells")));
}
