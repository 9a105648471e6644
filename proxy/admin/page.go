package admin

import (
	"embed"
	"io/fs"
	"net/http"
	"strings"
)

// files are the files of the page: HTML, scripts and styles, and uPlot, which draws the charts (MIT,
// with its licence).
//
//go:embed page
var files embed.FS

// pagePolicy allows the page only resources of this server: no inline scripts or styles, no other
// hosts, no framing.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// HandlePage adds the page's routes to a mux: GET /rebound/ and the files it loads.
func HandlePage(mux *http.ServeMux) {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	mux.HandleFunc("GET /rebound/{$}", func(w http.ResponseWriter, r *http.Request) {
		guardPage(w.Header())
		http.ServeFileFS(w, r, page, "/") // its index.html
	})
	mux.HandleFunc("GET /rebound/{file}", func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("file")
		if _, err := fs.Stat(page, name); err != nil || strings.HasSuffix(name, ".html") {
			refuse(w, http.StatusNotFound, "unknown_path", "Not found. The page is at /rebound/.")
			return
		}
		guardPage(w.Header())
		http.ServeFileFS(w, r, page, name)
	})
}

// ServeLogin answers with the login form for the admin token, with status 403. refused means that a
// wrong token was given.
func ServeLogin(w http.ResponseWriter, refused bool) {
	form, err := files.ReadFile("page/login.html")
	if err != nil {
		panic(err) // the file is embedded above
	}
	if refused {
		form = []byte(strings.Replace(string(form), "<button>", `<p class="refused" role="alert">That is not the admin token.</p>`+"\n  <button>", 1))
	}
	guardPage(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write(form) // the browser may have left
}

func guardPage(h http.Header) {
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
}
