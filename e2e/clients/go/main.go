// Command go drives openai-go: one JSON request per line on standard input, one
// JSON answer per line on standard output, any number at a time. The protocol
// is described in ../../driver.go. The client keeps its default settings.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
)

type call struct {
	ID       int    `json:"id"`
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	Model    string `json:"model"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
	} `json:"tools"`
	Stream              bool     `json:"stream"`
	IncludeUsage        bool     `json:"include_usage"`
	MaxTokens           *int64   `json:"max_tokens"`
	MaxCompletionTokens *int64   `json:"max_completion_tokens"`
	Temperature         *float64 `json:"temperature"`
	TimeoutMS           int      `json:"timeout_ms"`
	CancelAfterMS       int      `json:"cancel_after_ms"`
	GiveUpMS            int      `json:"give_up_ms"`
}

type toolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

type sent struct {
	AtMS   int64 `json:"at_ms"`
	Status int   `json:"status"`
}

type answer struct {
	ID           int        `json:"id"`
	OK           bool       `json:"ok"`
	Text         string     `json:"text"`
	ToolCalls    []toolCall `json:"tool_calls,omitempty"`
	FinishReason string     `json:"finish_reason"`
	Model        string     `json:"model"`
	Usage        *usage     `json:"usage,omitempty"`
	Error        string     `json:"error,omitempty"`
	ErrorType    string     `json:"error_type,omitempty"`
	Status       int        `json:"status,omitempty"`
	Code         string     `json:"code,omitempty"`
	BegunMS      int64      `json:"begun_ms"`
	ElapsedMS    int64      `json:"elapsed_ms"`
	FirstTokenMS int64      `json:"first_token_ms"`
	Chunks       int        `json:"chunks"`
	Ended        string     `json:"ended,omitempty"`
	Sent         []sent     `json:"sent,omitempty"`
}

// Why a call was broken off.
var (
	errCancelled = errors.New("cancelled")
	errGaveUp    = errors.New("gave up")
)

func main() {
	out := json.NewEncoder(os.Stdout)
	var mu sync.Mutex
	var calls sync.WaitGroup
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var c call
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			log.Fatalf("reading a call: %v", err)
		}
		calls.Go(func() {
			a := c.run()
			mu.Lock()
			defer mu.Unlock()
			if err := out.Encode(a); err != nil {
				log.Fatalf("writing an answer: %v", err)
			}
		})
	}
	calls.Wait()
}

func (c *call) run() (a answer) {
	a = answer{ID: c.ID, FirstTokenMS: -1}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if c.CancelAfterMS > 0 {
		defer time.AfterFunc(time.Duration(c.CancelAfterMS)*time.Millisecond, func() { stop(errCancelled) }).Stop()
	}
	if c.GiveUpMS > 0 {
		defer time.AfterFunc(time.Duration(c.GiveUpMS)*time.Millisecond, func() { stop(errGaveUp) }).Stop()
	}
	begun := time.Now()
	a.BegunMS = begun.UnixMilli()
	count := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		s := sent{AtMS: time.Since(begun).Milliseconds()}
		res, err := next(r)
		if err == nil {
			s.Status = res.StatusCode
		}
		a.Sent = append(a.Sent, s)
		return res, err
	}
	opts := []option.RequestOption{option.WithBaseURL(c.BaseURL), option.WithAPIKey(c.APIKey), option.WithMiddleware(count)}
	if c.TimeoutMS > 0 {
		opts = append(opts, option.WithRequestTimeout(time.Duration(c.TimeoutMS)*time.Millisecond))
	}
	client := openai.NewClient(opts...)
	var err error
	if c.Stream {
		err = c.stream(ctx, client, begun, &a)
	} else {
		err = c.whole(ctx, client, &a)
	}
	a.ElapsedMS = time.Since(begun).Milliseconds()
	a.OK = err == nil
	switch cause := context.Cause(ctx); {
	case err == nil:
		return a
	case cause == errCancelled:
		a.Ended = "cancelled"
	case cause == errGaveUp:
		a.Ended = "gave_up"
	}
	a.Error, a.ErrorType = err.Error(), "error"
	if api, ok := errors.AsType[*openai.Error](err); ok {
		a.ErrorType, a.Status, a.Code = "openai.Error", api.StatusCode, api.Code
		a.Error += ": " + api.Message
	}
	return a
}

func (c *call) params() openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: c.Model}
	for _, m := range c.Messages {
		if m.Role == "system" {
			p.Messages = append(p.Messages, openai.SystemMessage(m.Content))
		} else {
			p.Messages = append(p.Messages, openai.UserMessage(m.Content))
		}
	}
	for _, t := range c.Tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: t.Name, Description: openai.String(t.Description), Parameters: t.Parameters,
		}))
	}
	if c.MaxTokens != nil {
		p.MaxTokens = openai.Int(*c.MaxTokens)
	}
	if c.MaxCompletionTokens != nil {
		p.MaxCompletionTokens = openai.Int(*c.MaxCompletionTokens)
	}
	if c.Temperature != nil {
		p.Temperature = openai.Float(*c.Temperature)
	}
	if c.Stream && c.IncludeUsage {
		p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)}
	}
	return p
}

func (c *call) whole(ctx context.Context, client openai.Client, a *answer) error {
	res, err := client.Chat.Completions.New(ctx, c.params())
	if err != nil {
		return err
	}
	a.Model, a.Usage = res.Model, usageOf(res.Usage)
	if len(res.Choices) == 0 {
		return nil
	}
	choice := res.Choices[0]
	a.Text, a.FinishReason = choice.Message.Content, choice.FinishReason
	for _, t := range choice.Message.ToolCalls {
		a.ToolCalls = append(a.ToolCalls, toolCall{t.ID, t.Function.Name, t.Function.Arguments})
	}
	return nil
}

func (c *call) stream(ctx context.Context, client openai.Client, begun time.Time, a *answer) error {
	stream := client.Chat.Completions.NewStreaming(ctx, c.params())
	defer stream.Close()
	for stream.Next() {
		chunk := stream.Current()
		a.Model = chunk.Model
		if u := usageOf(chunk.Usage); u != nil {
			a.Usage = u
		}
		for _, choice := range chunk.Choices {
			if choice.Delta.Content != "" || len(choice.Delta.ToolCalls) > 0 {
				a.Chunks++
				if a.FirstTokenMS < 0 {
					a.FirstTokenMS = time.Since(begun).Milliseconds()
				}
			}
			a.Text += choice.Delta.Content
			if choice.FinishReason != "" {
				a.FinishReason = choice.FinishReason
			}
			for _, t := range choice.Delta.ToolCalls {
				for int(t.Index) >= len(a.ToolCalls) {
					a.ToolCalls = append(a.ToolCalls, toolCall{})
				}
				to := &a.ToolCalls[t.Index]
				to.ID += t.ID
				to.Name += t.Function.Name
				to.Arguments += t.Function.Arguments
			}
		}
	}
	return stream.Err()
}

func usageOf(u openai.CompletionUsage) *usage {
	if u.TotalTokens == 0 {
		return nil
	}
	return &usage{u.PromptTokens, u.CompletionTokens, u.TotalTokens}
}
