package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Lives of what the authority gives out.
const (
	cookieLife    = 30 * 24 * time.Hour
	loginCodeLife = 2 * time.Minute
	maxLoginCodes = 32 // outstanding at once
)

// Subprotocols of the stream. A client that can set no header (a page of another tool)
// offers the second with its token; only the first is ever selected, so that the token
// is not sent back.
const (
	subprotocol       = "turnkeeper.v1"
	subprotocolBearer = "turnkeeper.bearer."
)

// How a request has shown who it is.
type principalKind int

const (
	byNobody principalKind = iota
	byBearer
	byCookie
)

type principal struct {
	kind   principalKind
	client string // web, cli, acp …: kept with what it asks for

	revoked <-chan struct{} // closed when what it showed counts no more; nil for nobody
}

type principalKey struct{}

func withPrincipal(ctx context.Context, p principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

func principalOf(ctx context.Context) principal {
	p, _ := ctx.Value(principalKey{}).(principal)
	return p
}

func clientOf(ctx context.Context) string { return principalOf(ctx).client }

// clientHeader lets a program name itself; it is shown beside what it answered.
const clientHeader = "Turnkeeper-Client"

// authority knows the token, and gives browsers a cookie for a one-time code. The token
// can be replaced: everything that was given out for the old one ends with it.
type authority struct {
	now     func() time.Time
	refresh func() // may replace the token; asked when somebody shows one that is not ours
	current atomic.Pointer[credentials]
}

// credentials are one token and what it was given out for.
//
// The cookie is "nonce.expiry.mac", signed with a key derived from the token, and is
// verified without any state: it outlives a restart of the daemon, so that an open page
// recovers by itself, and ends with the token.
type credentials struct {
	token   [sha256.Size]byte // hash: comparing hashes takes the same time for every guess
	set     bool
	key     []byte
	cookie  string // its name; cookies are not apart by port, so each daemon has its own
	now     func() time.Time
	revoked chan struct{} // closed when another token has taken its place

	mu    sync.Mutex
	codes map[[sha256.Size]byte]time.Time // hash of a one-time code → when it ends
}

func newAuthority(token string, now func() time.Time, refresh func()) *authority {
	u := &authority{now: now, refresh: refresh}
	u.current.Store(newCredentials(token, now))
	return u
}

func newCredentials(token string, now func() time.Time) *credentials {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("turnkeeper browser cookie 1"))
	hash := sha256.Sum256([]byte(token))
	name := sha256.Sum256(hash[:])
	return &credentials{
		token: hash, set: token != "", key: mac.Sum(nil),
		cookie: "turnkeeper_" + hex.EncodeToString(name[:4]),
		now:    now, revoked: make(chan struct{}), codes: map[[sha256.Size]byte]time.Time{},
	}
}

// replace makes token the one that counts, and reports whether it is another one. The old
// token, its cookies and its codes are nobody's from then on.
func (u *authority) replace(token string) bool {
	next := newCredentials(token, u.now)
	for {
		old := u.current.Load()
		if old.token == next.token && old.set == next.set {
			return false
		}
		if u.current.CompareAndSwap(old, next) {
			close(old.revoked)
			return true
		}
	}
}

// identify says who asks. A request without proof is nobody's; an authority without a
// token knows nobody.
func (u *authority) identify(r *http.Request) principal {
	who := u.current.Load().identify(r)
	if who.kind != byNobody || u.refresh == nil {
		return who
	}
	if _, shown := bearerOf(r); !shown { // a cookie that has ended is not news
		return who
	}
	u.refresh()
	return u.current.Load().identify(r)
}

func (u *credentials) identify(r *http.Request) principal {
	if token, ok := bearerOf(r); ok {
		if u.validToken(token) {
			return principal{byBearer, clientName(r, "api"), u.revoked}
		}
		return principal{} // a wrong token is not saved by a cookie
	}
	if c, err := r.Cookie(u.cookie); err == nil && u.validCookie(c.Value) {
		return principal{byCookie, clientName(r, "web"), u.revoked}
	}
	return principal{}
}

func bearerOf(r *http.Request) (string, bool) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer")
	}
	for _, h := range r.Header.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(h, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(p), subprotocolBearer); ok {
				return token, true
			}
		}
	}
	return "", false
}

// clientName takes a short plain word or the fallback.
func clientName(r *http.Request, fallback string) string {
	name := r.Header.Get(clientHeader)
	if name == "" || len(name) > 32 {
		return fallback
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fallback
		}
	}
	return name
}

func (u *credentials) validToken(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], u.token[:]) == 1 && u.set
}

// newCookie makes the cookie of one browser.
func (u *credentials) newCookie(secure bool) *http.Cookie {
	body := rand.Text() + "." + strconv.FormatInt(u.now().Add(cookieLife).Unix(), 36)
	return &http.Cookie{
		Name: u.cookie, Value: body + "." + u.sign(body), Path: "/", MaxAge: int(cookieLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
	}
}

func (u *credentials) sign(body string) string {
	mac := hmac.New(sha256.New, u.key)
	mac.Write([]byte(body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (u *credentials) validCookie(value string) bool {
	_, ok := u.cookieEnd(value)
	return ok
}

// cookieEnd returns when a cookie of ours ends; ok is false for every other, and for one
// that has ended.
func (u *credentials) cookieEnd(value string) (end time.Time, ok bool) {
	i := strings.LastIndexByte(value, '.')
	if i < 0 || !u.set || !hmac.Equal([]byte(u.sign(value[:i])), []byte(value[i+1:])) {
		return time.Time{}, false
	}
	_, expiry, _ := strings.Cut(value[:i], ".")
	unix, err := strconv.ParseInt(expiry, 36, 64)
	end = time.Unix(unix, 0)
	return end, err == nil && u.now().Before(end)
}

// mintCode returns a new one-time code.
func (u *credentials) mintCode() (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	for h, end := range u.codes {
		if !now.Before(end) {
			delete(u.codes, h)
		}
	}
	if len(u.codes) >= maxLoginCodes {
		return "", newProblem(codeTooManyLoginCode, fmt.Sprintf("%d login codes are open already; they end after %s.", len(u.codes), loginCodeLife))
	}
	code := rand.Text()
	u.codes[sha256.Sum256([]byte(code))] = now.Add(loginCodeLife)
	return code, nil
}

// redeem uses up a code: it is good once.
func (u *credentials) redeem(code string) bool {
	h := sha256.Sum256([]byte(code))
	u.mu.Lock()
	defer u.mu.Unlock()
	end, ok := u.codes[h]
	delete(u.codes, h)
	return ok && u.now().Before(end)
}
