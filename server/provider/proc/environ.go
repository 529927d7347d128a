package proc

import (
	"maps"
	"slices"
	"strings"
)

// BaseAllow names the variables any command line tool may see: who the user is,
// where things lie, language, network access. Credentials are not among them;
// an adapter names those of its own provider and no others.
func BaseAllow() []string {
	return []string{
		"HOME", "USER", "LOGNAME", "SHELL", "PATH", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ",
		"TMPDIR", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
		"http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
}

// Environ builds a child's environment from environ ("KEY=value" strings, as
// os.Environ gives): the variables that allow names ("LC_*" stands for all with
// that prefix), with set on top. The result is sorted and never nil.
func Environ(allow, environ []string, set map[string]string) []string {
	vars := map[string]string{}
	for _, kv := range environ {
		key, value, ok := strings.Cut(kv, "=")
		if ok && allowed(allow, key) {
			vars[key] = value
		}
	}
	maps.Copy(vars, set)
	out := make([]string, 0, len(vars))
	for _, key := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, key+"="+vars[key])
	}
	return out
}

func allowed(allow []string, key string) bool {
	return slices.ContainsFunc(allow, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, "*")
		return key == pattern || wild && strings.HasPrefix(key, prefix)
	})
}
