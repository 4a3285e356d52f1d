//! The loopback server of a case.

use wiremock::matchers::path as path_is;
use wiremock::{Match, Mock, MockServer, Request, ResponseTemplate};

use super::{Case, Reply, unhex};

/// Starts the server and sets up its replies. `{{server}}` in headers is its own address.
pub(super) async fn start(case: &Case) -> MockServer {
    let server = MockServer::start().await;
    for reply in &case.serve {
        let (path, query) = match reply.path.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (reply.path.as_str(), None),
        };
        Mock::given(path_is(path))
            .and(Query(query))
            .respond_with(template(reply, &server.uri()))
            .mount(&server)
            .await;
    }
    server
}

fn template(reply: &Reply, uri: &str) -> ResponseTemplate {
    let body = match &reply.body_hex {
        Some(hex) => unhex(hex),
        None => reply.body.replace("{{server}}", uri).into_bytes(),
    };
    let mut template =
        ResponseTemplate::new(reply.status).set_body_bytes(body.repeat(reply.repeat));
    for (name, value) in &reply.headers {
        template = template.insert_header(name.as_str(), value.replace("{{server}}", uri));
    }
    template
}

/// The raw query, exactly; without one in the case, any.
struct Query(Option<String>);

impl Match for Query {
    fn matches(&self, request: &Request) -> bool {
        self.0.as_deref().is_none_or(|query| request.url.query() == Some(query))
    }
}
