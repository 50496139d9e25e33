//! How nginx is set up as a proxy.

use std::path::Path;

use crate::http_proxy::{Forwarding, ForwardingHeader};

/// One process in the foreground, whose files all lie in `folder`.
pub(crate) fn configuration(folder: &Path, port: u16, forwarding: &Forwarding) -> String {
    let header = match forwarding.header {
        ForwardingHeader::XForwardedFor => "X-Forwarded-For $proxy_add_x_forwarded_for",
        ForwardingHeader::Forwarded => "Forwarded $add_forwarded",
    };
    let Forwarding { upstream, from, .. } = forwarding;
    let folder = folder.display();
    format!(
        r#"
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    map $remote_addr $forwarded_element {{
        ~:      "for=\"[$remote_addr]\"";
        default "for=$remote_addr";
    }}
    map $http_forwarded $add_forwarded {{
        ""      $forwarded_element;
        default "$http_forwarded, $forwarded_element";
    }}
    server {{
        listen 127.0.0.1:{port};
        listen [::1]:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_bind {from};
            proxy_set_header {header};
        }}
    }}
}}
"#
    )
}
