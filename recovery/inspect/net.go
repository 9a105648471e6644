package inspect

import (
	"strings"

	"github.com/rebound-llm/rebound/recovery"
)

// httpForm is how clients state a response's status, up to the number.
const httpForm = `(?i)(?:^HTTP/[\d.]+ |\bHTTP (?:status|error|code)(?: code)?:? |\bstatus(?: |_)?code:? (?:of |is |was )?|\brequested URL returned error: |\bHTTPError: (?:HTTP Error )?|^HTTP ERROR |\bserver returned (?:HTTP response code: |HTTP |status )?|\bresponded with (?:a |status |code |HTTP )?(?:status of )?|\breturned (?:HTTP |status |code )(?:code )?|\bERROR |\bError: (?:HTTP )?|\bunexpected status(?: code)?:? |\bstatus: |\bRequest failed(?: with)?(?: status(?: code)?)? |\bHTTP |\bcode E|\bfailed: |\bfailed with |(?:^|[\s:])\(|^npm (?:error|ERR!) |error code:? |\b(?:GET|POST|PUT|PATCH|DELETE|HEAD) https?://\S{1,300}: )`

var statusNumber = recovery.NewPattern(`\b([45]\d\d)\b`)

// httpStatus is what the first status of a client's error message means.
func httpStatus(message string) recovery.Category {
	m := statusNumber.FindString(message)
	switch m {
	case "429":
		return recovery.ToolRateLimited
	case "401", "403":
		return recovery.PermissionDenied
	case "408", "504":
		return recovery.ToolTimeout
	case "500", "502", "503":
		return recovery.NetworkError
	}
	return recovery.CategoryNone
}

var rateRules = []rule{
	{"http-rate", recovery.ToolRateLimited, []string{"429"}, recovery.NewPattern(httpForm + `429\b`), piped},
	{"rate-code", recovery.ToolRateLimited, []string{"rate_limit", "too_many_requests", "slowdown", "too quickly", "throughputexceeded", "toomanyrequests", "ratelimit", "toomanyrequests", "resource_exhausted", "throttlingexception", "requestlimitexceeded", "secondary rate limit", "rate limit exceeded"},
		recovery.NewPattern(`^"?(?:rate_limit(?:ed|_exceeded|_error)?|too_many_requests|RESOURCE_EXHAUSTED)"?$|\b(?:RateLimitError|RatelimitException|ThrottlingException|RequestLimitExceeded|TooManyRequestsException|toomanyrequests:?|secondary rate limit|rate_limit_exceeded|RESOURCE_EXHAUSTED)(?:\b|:)|\b202 Ratelimit\b|(?:^|Exception: |Error: )(?:Ratelimit|Rate ?limited)$|(?:^|[:(] ?"?)(?:userR|r|R)ateLimitExceeded(?:["):,]|$)|\bProvisionedThroughputExceeded(?:Exception)?\b|\bTooManyRequests(?:Error|Exception): |\((?:SlowDown|Throttling|ThrottledException|TooManyRequests|RequestLimitExceeded)\)|\blikely making requests too quickly\b|\b(?:403|429) (?:API )?rate limit exceeded`), strict},
	{"rate-message", recovery.ToolRateLimited, []string{"rate limit", "too many requests", "rate-limit", "ratelimit", "requests per", "calls per", "queries per"},
		recovery.NewPattern(`(?i)^(?:\S{1,40}: |error: ?|.{0,60}\berror:? )?(?:429 too many requests\b|(?:\S+ )?(?:api )?(?:you are (?:being )?rate[- ]?limited|rate[- ]?limit(?:ed)? (?:reached|exceeded|hit|error)|you(?:'ve| have) (?:exceeded|reached|hit|been) .{0,40}rate[- ]?limit|too many requests[,.:;!]? .{0,40}(?:try again|retry|slow down|wait)|exceeded (?:the |your |api )?rate[- ]?limit|being rate[- ]?limited|you(?:'ve| have) exceeded (?:your |the )?(?:limit of |quota of )?\d[\d,]* (?:\w+ )?(?:requests|calls|queries) per \w+[.,;:!]? .{0,40}(?:try again|retry|wait)))`), strict},
	{"rate-words", recovery.ToolRateLimited, []string{"rate limit", "too many requests", "rate-limit", "ratelimit", "quota exceeded", "throttl", "请求过于频繁", "频率限制"},
		recovery.NewPattern(`(?i)\b(?:rate[- ]?limit(?:s|ed|ing)?(?: (?:exceeded|reached|hit|error))?|too many requests|quota exceeded|(?:request|rate) (?:was |is |has been )?throttled|throttling)\b|请求过于频繁|频率限制`), loose},
}

var timeoutRules = []rule{
	{"agent-timeout", recovery.ToolTimeout, []string{"timed out", "timeout", "time out", "time limit", "time budget", "maximum ", "allowed "},
		recovery.NewPattern(`(?i)^[\[(<*]*(?:(?:error|warning|tool error|timeout|timeouterror|mcp error -?\d+|toolerror)[: ]+)*(?:the |your |last |shell |bash |tool |process |previous |request |mcp |python |code |cell |script |current )*(?:command|execution|process|tool|call|request|script|operation|code|cell|job|program|task|test|session|bash|search|query|action|'.{1,300}'|".{1,300}"|\x60.{1,300}\x60)s?(?: '.{1,300}'| ".{1,300}"| \x60.{1,300}\x60)?(?: \S{1,60})? (?:execution )?(?:has |have |was |is |been |likely |probably )*(?:timed[ -]out|timeout|exceeded (?:the |its )?(?:\w+ )?(?:time ?out|time limit|\d+)|exceeded (?:the |its )?(?:maximum|max|allowed) (?:\w+ )?time\b|cancell?ed (?:because|due to|after).{0,40}(?:time|timeout)|killed (?:because|due to|after).{0,60}(?:time|timeout|second)|terminated (?:because|due to|after).{0,60}(?:timeout|timed|second|time limit)|aborted (?:after|due to).{0,40}(?:timeout|timed|second|\d)|terminated \w+ after exceeding (?:the )?timeout|did not (?:complete|finish|return) (?:in|within|after)|(?:hit|reached) (?:the )?(?:timeout|time limit)|stopped after \d)`), strict},
	{"timed-out-after", recovery.ToolTimeout, []string{"timed out", "timeout", "timedout"},
		recovery.NewPattern(`(?i)^[\[(]?(?:(?:error|\S{1,80}error|panic)[: ]+)*(?:execution timed out|timed? ?out(?: waiting| after| while|$|\.$)|timeout (?:after|of|reached|exceeded|expired|waiting|error|while)|.{0,120}\btimed out after \d|timeout: sending signal|test timed out after|.{0,80}exceeded (?:its |the )?(?:timeout|time limit)|(?:.{0,160}: )?(?:the )?(?:request|operation|tool call) timed out\.?$|Timeout \d+\s?ms exceeded|.{0,80}: Timeout \d+\s?m?s exceeded|TimeoutError(?:$|:| \[))`), strict},
	{"deadline", recovery.ToolTimeout, []string{"deadline", "execution expired", "timeoutexception", "timeouterror", "timeoutexpired", "etimedout", "-32001", "esockettimedout"},
		recovery.NewPattern(`context deadline exceeded|DEADLINE_EXCEEDED|code = DeadlineExceeded|execution expired|\b\w*TimeoutException\b|^(?:\S+\.)?TimeoutE(?:rror|xpired)(?:$|:| \[)|^(?:Uncaught |\[?)?(?:Error: )?(?:spawn(?:Sync)? \S+ |connect |read |request to \S+ failed, reason: (?:connect )?)?E(?:SOCKET)?TIMEDOUT\b|npm (?:error|ERR!) (?:code|errno) E(?:SOCKET)?TIMEDOUT|MCP error -32001`), strict},
	{"timeout-exception", recovery.ToolTimeout, []string{"time"}, recovery.NewPattern(`^(?:\w+ \[|(?:\w+\.)*)(?:ReadTimeout|ConnectTimeout|WriteTimeout|PoolTimeout|TimeoutError|TimeoutException|TimeoutExpired|ReadTimeoutError|APITimeoutError|\w*TimedOut)\]?(?::(?: \S.*)?)?$`), strict},
	{"statement-timeout", recovery.ToolTimeout, []string{"statement timeout", "lock timeout", "wait timeout", "statement execution time", "session timeout"},
		recovery.NewPattern(`^(?:\S{1,80}: )*(?:ERROR|FATAL)(?: \d+ \(\w+\).{0,40})?: +(?:canceling statement due to (?:statement|lock) timeout|Lock wait timeout exceeded|Query execution was interrupted, maximum statement execution time exceeded|terminating connection due to .{0,40}session timeout)`), piped},
	{"curl-timeout", recovery.ToolTimeout, []string{"curl: (28)", "read error (connection timed out)", "operation timed out", "operation too slow"}, recovery.NewPattern(`^curl: \(28\)|^Read error \(Connection timed out\)`), piped},
	{"http-timeout", recovery.ToolTimeout, []string{"408", "504"}, recovery.NewPattern(httpForm + `(?:408|504)\b`), strict},
	{"timeout-other-languages", recovery.ToolTimeout, []string{"zeitüberschreitung", "délai", "tiempo de espera", "超时", "タイムアウト", "tempo limite", "zeitlimit"},
		recovery.NewPattern(`(?i)Zeitüberschreitung|Zeitlimit .{0,30}überschritten|délai (?:d['’]attente )?.{0,30}(?:dépassé|expiré)|tiempo de espera .{0,30}(?:agotado|excedido)|(?:连接|命令|执行|请求|操作)(?:已)?超时|タイムアウト(?:しました|です|$)|tempo limite`), loose},
	{"timeout-words", recovery.ToolTimeout, []string{"timed out", "timeout", "time limit"}, recovery.NewPattern(`(?i)\b(?:timed out|timeout (?:exceeded|expired|reached|error)|time limit exceeded|timeout (?:of|after) \d+\w*|\d+\s?m?s timeout)\b`), loose},
}

// serverAnswered is the rule of a connection that failed behind the network.
const serverAnswered = "server-answered"

var networkRules = []rule{
	// Who states a status of the client's was answered.
	{"status-answered", recovery.CategoryNone, []string{"fetch", "request", "download", "failed", "load", "returned"},
		recovery.NewPattern(`(?i)^(?:\S{1,60}: ){0,3}(?:\w+ ){0,4}?(?:(?:failed to (?:fetch|load|get|download|retrieve|open|read|access)|(?:could not|cannot|unable to|error) (?:fetch(?:ing)?|load(?:ing)?|get(?:ting)?|download(?:ing)?|retriev(?:e|ing))|fetch failed|download failed|request (?:to \S+ )?failed)\b.{0,300}?(?:\bstatus(?: code)?:? (?:of )?|\bHTTP(?:/[\d.]+)? (?:error |status )?|\berror:? |\breturned |[-:(] ?)(?:400|402|404|405|406|409|410|41[1-8]|42[1-68]|431|451|501)\b)`), strict},
	{"curl-network", recovery.NetworkError, []string{"curl: ("}, recovery.NewPattern(`^(?:\S+ )?curl: \((?:5|6|7|16|18|35|51|52|55|56|58|60|77|80|91|92|95|96)\)`), piped},
	{"curl-status", recovery.NetworkError, []string{"returned error: 50"}, recovery.NewPattern(`^curl: \(22\) The requested URL returned error: 50[0-3]`), piped},
	{"npm-network", recovery.NetworkError, []string{"npm "}, recovery.NewPattern(`^npm (?:error|ERR!) (?:(?:code|errno) |.*\bfailed, reason: (?:.*[ :])?)(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_SOCKET_TIMEOUT|CERT_HAS_EXPIRED|SELF_SIGNED_CERT\w*|UNABLE_TO_\w+)`), piped},
	{"runtime-network", recovery.NetworkError, []string{"econnrefused", "econnreset", "enotfound", "eai_again", "ehostunreach", "enetunreach", "epipe", "econnaborted", "und_err", "self_signed", "unable_to_verify", "err_name_not", "err_connection", "err_internet", "err_network", "err_tunnel", "err_ssl", "err_cert", "err_empty", "err_proxy", "err_socket", "err_http2"},
		recovery.NewPattern(`(?:^|[\s:('"])(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ECONNABORTED|UND_ERR_\w+|SELF_SIGNED_CERT\w*|UNABLE_TO_VERIFY\w*|net::ERR_(?:NAME_NOT_RESOLVED|CONNECTION_\w+|INTERNET_DISCONNECTED|EMPTY_RESPONSE|PROXY_\w+|SOCKET\w*|HTTP2_\w+|NETWORK_\w+|TUNNEL_\w+|SSL_\w+|CERT_\w+|ADDRESS_UNREACHABLE))\b`), strict},
	// What curl and its TLS library say below git; a status is not among it.
	{"git-transport", recovery.NetworkError, []string{"fatal: ", "error: rpc failed"},
		recovery.NewPattern(`^fatal: unable to access '[^']{1,300}': (?:GnuTLS|gnutls|OpenSSL|LibreSSL|SSL|TLS|schannel|Recv failure|Send failure|Empty reply|Failed sending|Failed receiving|Failure when receiving|transfer closed|Connection (?:was )?(?:reset|closed|refused)|Could ?n[o']t (?:connect|resolve)|Could not (?:connect|resolve)|HTTP/2|Received HTTP|Proxy|server certificate|error setting certificate)|^error: RPC failed; (?:curl (?:16|18|52|55|56|92)|HTTP 50[023])\b|^fatal: (?:fetch-pack: unexpected disconnect|early EOF$)`), strict},
	// The last try of wget: where another follows, it is none's failure.
	{"wget-connect", recovery.NetworkError, []string{"... failed: "},
		recovery.NewPattern(`^(?:Connecting to|Resolving) \S+ .{0,120}\.\.\. failed: (?:Connection refused|No route to host|Network is unreachable|Connection reset by peer|Name or service not known|Temporary failure in name resolution|nodename nor servname)`), piped},
	// A server that answered was reached: what it says is the failure.
	{serverAnswered, recovery.CategoryNone, []string{"connect to", "connection to"},
		recovery.NewPattern(`(?i)\b(?:connection to .{1,200} failed|(?:could not|couldn't|failed to|unable to|cannot|can't) connect to .{1,200}?): (?:.{0,120}[:(] ?)?(?:FATAL|fe_sendauth|authentication method|server (?:error|does not support|returned error))\b`), strict},
	{"resolve", recovery.NetworkError, []string{"resolve", "resolution", "no such host", "name or service", "nodename nor servname", "unknown host", "no address associated", "resolv", "unknownhostexception"},
		recovery.NewPattern(`(?i)\b(?:could not resolve (?:host|proxy|hostname)|couldn't resolve host|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname provided|no such host\b|unknown host\b|UnknownHostException|failed to resolve (?:address|host)|unable to resolve (?:host|address)|no address associated with hostname|server can't find|could not be resolved|name resolution (?:failed|failure|error)|getaddrinfo failed|failed to lookup address|dns (?:lookup|resolution) failed)`), strict},
	{"connect", recovery.NetworkError, []string{"connect", "unreachable", "no route", "connection", "socket", "fetch", "network", "remote"},
		recovery.NewPattern(`(?i)^(?:(?:[\w./+\[\]()' -]{1,80}|.{0,40}\b(?:error|fatal|failed|unable|request|dial|connect|curl|ssh|wget|exception)\b.{0,240}): ?(?:.{0,200}[\s:(])?|[\w.]{0,60}(?:Error|Exception)\S*: .{0,200})(?:connection (?:refused|reset(?: by peer)?|aborted|timed out)|network is (?:unreachable|down)|no route to host|host is unreachable|connection error|connect error|network error)\b.{0,300}$|^(?:[^:]{1,80}: |.{0,40}\b(?:error|fatal|failed|unable|request|dial|connect|curl|ssh|wget|exception)\b.{0,240}[:(] ?)?(?:connection (?:refused|reset|closed) by (?:remote host|foreign host|peer|\S+ port \d+)|(?:could not|couldn't|failed to|unable to|cannot|can't) (?:establish (?:a )?(?:new )?(?:ssl )?connection|connect to (?:the )?(?:server\b|host\b|docker daemon|endpoint|database|mysql|remote|\S+:\d+|\S+ port|local mysql|\S+\.\S+))|could not connect to (?:the )?endpoint|remote end hung up unexpectedly|remote end closed connection|the remote end|(?:the )?connection to .{1,120} (?:failed(?:[^:]{0,200}$|: .{0,300}\b(?:refused|reset|timed out|timeout|unreachable|no route|could not (?:translate|resolve)|cannot resolve|name or service|name resolution|unknown host|no such (?:host|file)|closed|lost|down|aborted|hang up|broken pipe|EOF|certificate|handshake|SSL|TLS))|was refused|refused|timed out|was lost|lost)|socket hang up|fetch failed|failed to fetch)\b.{0,300}$`), strict},
	{"network-exception", recovery.NetworkError, []string{"connect", "gaierror", "urlerror", "proxyerror", "sslerror", "sslcertverificationerror", "maxretryerror", "disconnected", "unreachable"}, recovery.NewPattern(`^(?:\w+\.)*(?:ConnectionError|ConnectError|Connection(?:Refused|Reset|Aborted)Error|APIConnectionError|EndpointConnectionError|ClientConnector\w*Error|ServerDisconnectedError|RemoteDisconnected|gaierror|URLError|ProxyError|NoValidConnectionsError|MaxRetryError|NewConnectionError|SSLError|SSLCertVerificationError)(?:: .*)?$`), strict},
	{"tls", recovery.NetworkError, []string{"certificate", "ssl", "tls"},
		recovery.NewPattern(`(?i)^(?:\S{1,80}: |.{0,200}\b(?:error|failed|unable|curl|problem|fatal|x509|failure|exception)\b).{0,300}?(?:certificate verify failed|x509: certificate|certificate has expired|ssl (?:certificate problem|handshake|connect error)|tls handshake (?:timeout|failure)|unable to verify the first certificate|self[- ]signed certificate|sslhandshakeexception|server certificate verification failed|wrong version number|gnutls_handshake)|^(?:x509: certificate|certificate verify failed|self[- ]signed certificate)`), strict},
	{"transport-exception", recovery.NetworkError, []string{"java.net.", "system.net.", "httprequestexception", "socketexception", "connectexception"},
		recovery.NewPattern(`java\.net\.(?:ConnectException|NoRouteToHostException|SocketException|UnknownHostException)|System\.Net\.(?:Sockets\.SocketException|Http\.HttpRequestException|WebException)|SocketException|ConnectException`), strict},
	{"apt-fetch", recovery.NetworkError, []string{"failed to fetch", "unable to fetch", "failed to download", "download failed", "failed to synchronize"},
		recovery.NewPattern(`^(?:[EW]: Failed to fetch |[EW]: Some index files failed|E: Unable to fetch some archives|error: failed to download|.{0,40}Failed to download metadata|error: failed to synchronize)`), strict},
	{"http-unavailable", recovery.NetworkError, []string{"500", "502", "503"}, recovery.NewPattern(httpForm + `(?:502|503)\b`), strict},
	{"network-other-languages", recovery.NetworkError, []string{"verbindung", "connexion", "conexión", "连接", "接続", "名称解析", "名前解決", "无法解析", "无法访问", "netzwerk"},
		recovery.NewPattern(`(?i)Verbindungsaufbau abgelehnt|Verbindung (?:verweigert|abgelehnt|wurde zurückgesetzt)|Connexion refusée|Conexión (?:rehusada|rechazada)|拒绝连接|连接被拒绝|接続を拒否されました|无法解析主机|名前解決に失敗|Das Netzwerk ist nicht erreichbar`), strict},
	{"network-words", recovery.NetworkError, []string{"network", "connection", "unreachable", "dns", "connect", "bad gateway", "service unavailable"},
		recovery.NewPattern(`(?i)\b(?:network (?:error|failure|issue|is unreachable|timeout)|connection (?:error|refused|reset|closed|failed|aborted|lost)|dns (?:error|lookup|resolution)|failed to connect|unable to connect|could not connect|cannot connect|bad gateway|service (?:temporarily )?unavailable)\b`), loose},
}

// pipRetry is pip's warning that it tries again; noDistribution is its last word
// on a package, the same whether the index has none or was not reached.
var (
	pipRetry       = recovery.NewPattern(`\bRetrying \(Retry\(total=\d+.{0,200} after connection broken by '\w`)
	noDistribution = recovery.NewPattern(`^ERROR: (?:No matching distribution found|Could not find a version that satisfies)`)
)

// pipOffline recognises a package that pip did not find because it did not reach the index.
func (v *view) pipOffline() finding {
	if v.outcome == succeeded || !strings.HasPrefix(v.lastLine(), "ERROR: ") || !noDistribution.MatchString(v.lastLine()) {
		return finding{}
	}
	for _, line := range v.lines[max(0, len(v.lines)-12):] {
		if pipRetry.MatchString(short(line)) {
			return finding{true, recovery.NetworkError, likely, "pip-offline", line}
		}
	}
	return finding{}
}
