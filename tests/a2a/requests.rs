//! JSON-RPC: what is a request, whom it is answered, and with which code.

use handoffd::a2a::{
    ErrorCode, Id, Incoming, Request, RpcError, Version, body, failed, read_requests, succeeded,
};
use serde_json::{Value as Json, json};

/// The answers to a body: those of a batch in brackets, nothing for a notification, `ok` for a call.
fn answers(text: &str, asked: Option<&str>) -> String {
    let one = |request: &Request| {
        let id = request.id.as_ref().map(|id| id.to_json().to_string())?;
        Some(match &request.call {
            Ok(_) => format!("{id} ok"),
            Err(error) => format!("{id} {}", error.code.number()),
        })
    };
    let document = match body(text.as_bytes()) {
        Ok(document) => document,
        Err(error) => return error.code.number().to_string(),
    };
    match read_requests(&document, asked) {
        Err(error) => error.code.number().to_string(),
        Ok(Incoming::One(request)) => one(&request).unwrap_or_default(),
        Ok(Incoming::Batch(requests)) => {
            let answers: Vec<String> = requests.iter().filter_map(one).collect();
            format!("[{}]", answers.join(", "))
        }
    }
}

#[test]
fn every_kind_of_malformed_request_gets_its_own_code() {
    let check = |text: &str, expected: &str| assert_eq!(answers(text, None), expected, "{text}");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"hs_12345678"}}"#, "1 ok");
    // What is no JSON, or not JSON that everybody reads alike.
    for text in [
        "",
        "{",
        "[1,",
        "nonsense",
        r#"{"jsonrpc":"2.0",}"#,
        r#"{"id":1,"id":2}"#,
        "{'a':1}",
        r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"tasks/get"}"#,
        "{} {}",
        "\u{feff}{}",
        r#"{"a":"\ud800"}"#,
    ] {
        check(text, "-32700");
    }
    // JSON, and no request. It is answered under its id where that can be read.
    for text in [
        "1",
        "null",
        r#""tasks/get""#,
        "{}",
        r#"{"method":"tasks/get"}"#,
        r#"{"jsonrpc":2.0,"method":"tasks/get"}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"tasks/get"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"tasks/get"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"tasks/get"}"#,
        r#"{"jsonrpc":"2.0","method":"tasks/get","params":"bar"}"#,
    ] {
        check(text, "null -32600");
    }
    check(r#"{"jsonrpc":"1.0","id":7,"method":"tasks/get"}"#, "7 -32600");
    check(r#"{"jsonrpc":"2.0","id":"a"}"#, r#""a" -32600"#);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":5}"#, "1 -32600");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/fetch","params":{}}"#, "1 -32601");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"","params":{}}"#, "1 -32601");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"TASKS/GET","params":{}}"#, "1 -32601");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":["hs_12345678"]}"#, "1 -32602");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#, "1 -32602");
    check(r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":null}"#, "1 -32602");
}

#[test]
fn an_id_is_a_string_a_number_or_null_and_comes_back_as_it_was() {
    for id in ["1", "-7", "1.5", "0", "null", r#""""#, r#""a b""#] {
        let text =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/get","params":{{"id":"hs_12345678"}}}}"#);
        assert_eq!(answers(&text, None), format!("{id} ok"));
    }
    let answer = succeeded(&Id::NULL, json!({"a": 1}));
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": null, "result": {"a": 1}}));
    // `null` is a result, and stands there.
    assert_eq!(succeeded(&Id::NULL, Json::Null).get("result"), Some(&Json::Null));
}

#[test]
fn a_notification_is_answered_by_nobody_whatever_is_wrong_with_it() {
    for rest in [
        r#""method":"tasks/get","params":{"id":"hs_12345678"}"#,
        r#""method":"tasks/get","params":{}"#,
        r#""method":"nothing/like/it""#,
    ] {
        assert_eq!(answers(&format!(r#"{{"jsonrpc":"2.0",{rest}}}"#), None), "");
    }
}

#[test]
fn a_batch_has_an_answer_for_each_request_and_for_no_notification() {
    let get =
        |id: &str| format!(r#"{{"jsonrpc":"2.0",{id}"method":"tasks/get","params":{{"id":"hs_12345678"}}}}"#);
    let (one, silent) = (get(r#""id":1,"#), get(""));
    let check = |text: &str, expected: &str| assert_eq!(answers(text, None), expected, "{text}");
    check(
        &format!("[{one},{silent},1,{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"x\"}}]"),
        "[1 ok, null -32600, 2 -32601]",
    );
    check(&format!("[{silent}]"), "[]");
    check("[]", "-32600");
    check("[[]]", "[null -32600]");
    let many = |count: usize| format!("[{}]", vec![silent.as_str(); count].join(","));
    check(&many(100), "[]");
    check(&many(101), "-32600");
    // A stream is an answer of its own.
    let stream = |method: &str| {
        format!(r#"[{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"id":"hs_12345678"}}}}]"#)
    };
    check(&stream("SubscribeToTask"), "[1 -32004]");
    check(&stream("message/stream"), "[1 -32004]");
    check(&stream("SendStreamingMessage"), "[1 -32004]");
    check(&stream("tasks/resubscribe"), "[1 ok]");
}

#[test]
fn a_version_that_is_not_spoken_is_refused_and_an_absent_one_is_0_3() {
    let get = |method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"id":"hs_12345678"}}}}"#)
    };
    for asked in [None, Some(""), Some("0.3"), Some("0.3.0"), Some("1.0")] {
        assert_eq!(answers(&get("tasks/get"), asked), "1 ok", "{asked:?}");
        assert_eq!(answers(&get("GetTask"), asked), "1 ok", "{asked:?}");
    }
    // Who asks for another version is told so in the form of 1.0: the header is newer than 0.3.
    let told_in =
        |asked: Option<&str>, text: &str| match read_requests(&body(text.as_bytes()).unwrap(), asked) {
            Ok(Incoming::One(request)) => request.version,
            other => panic!("{other:?}"),
        };
    for (asked, version) in
        [(None, Version::V0_3), (Some("1.0"), Version::V1_0), (Some("2.0"), Version::V1_0)]
    {
        assert_eq!(told_in(asked, "{}"), version, "{asked:?}");
        assert_eq!(told_in(asked, &get("nothing")), version, "{asked:?}");
    }
    for asked in ["0.2", "1.1", "2.0", "one"] {
        assert_eq!(answers(&get("GetTask"), Some(asked)), "1 -32009", "{asked}");
        // What is no request is said first: there is nothing in it whose version could matter.
        assert_eq!(answers("{}", Some(asked)), "null -32600");
    }
}

#[test]
fn an_error_says_what_where_and_what_to_do_in_the_form_of_its_version() {
    let text = r#"{"jsonrpc":"2.0","id":"q","method":"task/get","params":{}}"#;
    let document = body(text.as_bytes()).unwrap();
    let Ok(Incoming::One(Request { id: Some(id), call: Err(error), .. })) = read_requests(&document, None)
    else {
        panic!("it was taken for something else");
    };
    let error = error.traced(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    let finding =
        |hint: &str| json!({"pointer": "/method", "message": "there is no method `task/get`", "hint": hint});
    assert_eq!(
        failed(&id, &error, Version::V0_3),
        json!({"jsonrpc": "2.0", "id": "q", "error": {
            "code": -32601, "message": "there is no method `task/get`",
            "data": {
                "codes": [],
                "findings": [finding("did you mean `tasks/get`?")],
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            },
        }})
    );
    assert_eq!(
        failed(&id, &error, Version::V1_0)["error"]["data"],
        json!([
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "METHOD_NOT_FOUND", "domain": "a2a-protocol.org",
                "metadata": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
            },
            {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": "/method", "description": "there is no method `task/get`; did you mean `tasks/get`?"}],
            },
        ])
    );
    let unreadable = body(b"{\"a\": 1, \"a\": 2}").unwrap_err();
    assert_eq!(unreadable.to_json(Version::V0_3)["data"]["codes"], json!(["A2A_BODY_INVALID"]));
    assert_eq!(unreadable.to_json(Version::V0_3)["data"]["findings"][0]["pointer"], "/a");
    assert_eq!(unreadable.to_json(Version::V1_0)["data"][0]["metadata"]["codes"], "A2A_BODY_INVALID");
    assert_eq!(
        RpcError::new(ErrorCode::Internal, "x").to_json(Version::V0_3),
        json!({"code": -32603, "message": "x"})
    );
}

#[test]
fn every_code_has_its_number_and_its_word_once() {
    let numbers: std::collections::BTreeSet<i32> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
    let words: std::collections::BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.reason()).collect();
    assert_eq!((numbers.len(), words.len()), (14, 14));
    let expected: std::collections::BTreeSet<i32> =
        [-32700].into_iter().chain(-32603..=-32600).chain(-32009..=-32001).collect();
    assert_eq!(numbers, expected);
}
