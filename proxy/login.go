package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"time"

	"github.com/rebound-llm/rebound/proxy/admin"
)

// A browser does not keep the admin token: it gets a cookie derived from it, for the page only.
// Replicas with the same token accept each other's cookies; a new token invalidates them all.
const (
	adminCookie = "rebound_admin"
	adminStay   = 12 * time.Hour
	pagePath    = "/rebound/"
	loginPath   = pagePath + "login"
	// stylePath is the only file of the page that needs no login, because the login form uses it.
	stylePath = pagePath + "style.css"
	// maxForm limits how much of the login form is read, in bytes.
	maxForm = 8 << 10
)

// stamp returns the value of a cookie that expires at end.
func stamp(token string, end time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(end.Unix()))
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte("rebound admin cookie\x00"))
	mac.Write(b)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(b))
}

// stamped reports whether a request has an unexpired cookie that was made from the token.
func stamped(r *http.Request, token string, now time.Time) bool {
	c, err := r.Cookie(adminCookie)
	if err != nil || token == "" {
		return false
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(b) != 8+sha256.Size {
		return false
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	return now.Before(end) && end.Before(now.Add(adminStay+time.Minute)) && hmac.Equal([]byte(c.Value), []byte(stamp(token, end)))
}

// login answers the login form: for the right token it sets the cookie.
func (s *Server) login(w http.ResponseWriter, r *http.Request, token string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	given := r.PostFormValue("token")
	if !isToken(given, token) {
		if given != "" {
			s.tries.wrong(r)
		}
		admin.ServeLogin(w, true)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: adminCookie, Value: stamp(token, time.Now().Add(adminStay)), Path: pagePath, MaxAge: int(adminStay / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || first(r.Header, "X-Forwarded-Proto") == "https",
	})
	http.Redirect(w, r, pagePath, http.StatusSeeOther)
}
