package proxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/proxy/upstream"
	"github.com/rebound-llm/rebound/recovery"
	"github.com/rebound-llm/rebound/recovery/transcript"
)

// modelListTime limits the wait for an upstream's list of models.
const modelListTime = 10 * time.Second

// maxModelList limits how much of an upstream's list is read, in bytes.
const maxModelList = 8 << 20

// models answers with the default upstream's list plus the configured names, or with these alone if
// the upstream gives no list.
func (s *Server) models(c echo.Context) error {
	core := s.core.Load()
	req := c.Request()
	who, err := s.authenticate(core, req)
	if err != nil {
		return err
	}
	api := apiOf(req)
	names := slices.DeleteFunc(core.Router.Names(), func(name string) bool { return len(core.Router.Candidates(name, api, "", 0)) == 0 })
	if len(names) == 0 && len(who.models) == 0 {
		return s.pass(c)
	}
	var list []json.RawMessage
	known := map[string]bool{}
	header := req.Header
	core.scrub(who, header, "")
	upstream.Forwardable(header, s.via)
	header["Accept-Encoding"] = []string{"identity"}
	ctx, cancel := context.WithTimeout(req.Context(), modelListTime)
	defer cancel()
	asked := &repeated{core: core, up: upstream.Request{Method: http.MethodGet, Path: "/models", Header: header, Narrow: who.restricted()},
		x: &recovery.Exchange{Request: recovery.Request{ID: requestID(), Mode: core.Engine.Config.Mode, Patience: modelListTime, Started: time.Now()},
			Caller:     recovery.Caller{Key: who.name},
			Candidates: core.Router.Candidates("", api, "", 0)}}
	asked.deliver = func(resp *http.Response, _ recovery.Choice) error {
		raw, rerr := io.ReadAll(io.LimitReader(resp.Body, maxModelList))
		_ = resp.Body.Close()
		if rerr == nil && resp.StatusCode == http.StatusOK && transcript.Valid(raw, 64) == nil {
			core.noteWindows(core.Defaults[api], raw)
			gjson.GetBytes(raw, "data").ForEach(func(_, m gjson.Result) bool {
				if id := m.Get("id").Str; who.may(id) {
					known[id] = true
					list = append(list, json.RawMessage(m.Raw))
				}
				return true
			})
		}
		return nil
	}
	if len(asked.x.Candidates) > 0 && core.switched(ctx, asked.x) == nil {
		_, _ = asked.run(ctx, asked.x.Candidates) // without an answer the configured names are the list
	}
	for _, name := range names {
		if !known[name] && who.may(name) {
			m, err := json.Marshal(dialects[api].model(name))
			if err != nil {
				return err
			}
			list = append(list, m)
		}
	}
	return c.JSON(http.StatusOK, dialects[api].list(list))
}

// model answers for a configured name that is no model of the upstream that is asked for other models.
func (s *Server) model(c echo.Context) error {
	core, req := s.core.Load(), c.Request()
	name, api := strings.TrimPrefix(withoutV1(req.URL.Path), "/models/"), apiOf(req)
	targets := core.Router.Candidates(name, api, "", 0)
	known := func(t recovery.Choice) bool { return t.Upstream == core.Defaults[api] && t.Model == name }
	if req.Method != http.MethodGet || !slices.Contains(core.Router.Names(), name) || len(targets) == 0 || slices.ContainsFunc(targets, known) {
		return s.pass(c)
	}
	who, err := s.authenticate(core, req)
	if err != nil {
		return err
	}
	if !who.may(name) {
		return s.pass(c) // which refuses it
	}
	return c.JSON(http.StatusOK, dialects[api].model(name))
}
