//go:build unix

package app_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rebound-llm/rebound/store/storetest"
)

// TestKeptForReplicas checks that every replica can continue a response from its id, and only for its own client.
// Redis holds the conversation encrypted. With store.content: off it holds nothing of it, and such a response is not
// continued, because the next request may reach another replica.
func TestKeptForReplicas(t *testing.T) {
	for _, content := range []string{"sealed", "off"} {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			const mark = "Zq8mark"
			redis := storetest.StartRedis(t).URL()
			p := pair(t, strings.TrimSuffix(slowStore(t, redis), "}")+", content: "+content+"}")
			body := fmt.Sprintf(`{"model":"m@text=A,cut=0.5,unkept/text=A","temperature":0,"stream":true,"input":"A question with %s in it."}`, mark)
			r := p.one.at(http.MethodPost, "", body, "sk-client")
			said := string(r.body)
			if whole := strings.Contains(said, `"type":"response.completed"`); whole != (content == "sealed") {
				t.Fatalf("complete: %v\n%s", whole, said)
			}
			stored, err := everythingIn(redis)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(stored, mark) || strings.Contains(stored, "resp_mock") || strings.Contains(stored, "vault/") != (content == "sealed") {
				t.Errorf("Redis has %.3000s", stored)
			}
			if content == "off" {
				if !strings.Contains(said, "With store: false") {
					t.Errorf("the error does not say what would help: %s", said)
				}
				return
			}
			_, data, _ := strings.Cut(said, "data: ")
			data, _, _ = strings.Cut(data, "\n")
			named := fmt.Sprintf(`{"model":"then","previous_response_id":%s,"input":"Go on."}`, gjson.Get(data, "response.id").Raw)
			if r := p.two.at(http.MethodPost, "", named, "sk-other"); r.status != http.StatusBadRequest {
				t.Errorf("another client: %v", r)
			}
			if r := p.two.at(http.MethodPost, "", named, "sk-client"); r.status != http.StatusOK {
				t.Errorf("the other replica: %v", r)
			}
			sent := p.up.Requests("then")
			if last := sent[len(sent)-1].Body; !strings.Contains(last, mark) || strings.Contains(last, "previous_response_id") {
				t.Errorf("the upstream was sent %s", last)
			}
			p.one.at(http.MethodDelete, "/"+gjson.Get(data, "response.id").Str, "", "sk-client")
			if stored, err := everythingIn(redis); err != nil || strings.Contains(stored, "vault/") {
				t.Errorf("after it was deleted: %v %.3000s", err, stored)
			}
		})
	}
}
