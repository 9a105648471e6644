package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// plainClient is HTTP without a library and without retries. It sees what the
// libraries hide: headers, comments, and how a stream ends.
type plainClient struct {
	http   *http.Client
	format Format
}

func newPlainClient(name string) Client {
	return &plainClient{&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, formatOf(name)}
}

func (p *plainClient) Close() error {
	p.http.CloseIdleConnections()
	return nil
}

// Why the plain client broke a call off.
var (
	errLeft   = errors.New("cancelled")
	errGaveUp = errors.New("gave_up")
)

// Do runs one call to its end.
func (p *plainClient) Do(c Call) (Answer, error) {
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	if c.CancelAfterMS > 0 {
		defer time.AfterFunc(time.Duration(c.CancelAfterMS)*time.Millisecond, func() { stop(errLeft) }).Stop()
	}
	if c.GiveUpMS > 0 {
		defer time.AfterFunc(time.Duration(c.GiveUpMS)*time.Millisecond, func() { stop(errGaveUp) }).Stop()
	}
	begun := time.Now()
	a := Answer{BegunMS: begun.UnixMilli(), FirstTokenMS: -1, Header: map[string]string{}, Sent: []Sent{{}}}
	err := p.do(ctx, c, begun, &a)
	a.ElapsedMS = time.Since(begun).Milliseconds()
	a.OK = err == nil
	a.Sent[0].Status = a.Status
	if err == nil {
		a.Status = 0
		return a, nil
	}
	if cause := context.Cause(ctx); cause == errLeft || cause == errGaveUp {
		a.Ended = cause.Error()
	}
	a.Error, a.ErrorType = err.Error(), "error"
	return a, nil
}

// body is a request as the libraries spell it.
func (c Call) body() ([]byte, error) {
	m := map[string]any{"model": c.Model, "messages": c.Messages}
	if c.Stream {
		m["stream"] = true
		if c.IncludeUsage {
			m["stream_options"] = map[string]any{"include_usage": true}
		}
	}
	var tools []any
	for _, t := range c.Tools {
		tools = append(tools, map[string]any{"type": "function", "function": t})
	}
	if tools != nil {
		m["tools"] = tools
	}
	if c.MaxTokens > 0 {
		m["max_tokens"] = c.MaxTokens
	}
	if c.MaxCompletionTokens > 0 {
		m["max_completion_tokens"] = c.MaxCompletionTokens
	}
	if c.Temperature > 0 {
		m["temperature"] = c.Temperature
	}
	if c.Seed > 0 {
		m["seed"] = c.Seed
	}
	return json.Marshal(m)
}

// envelope is OpenAI's shape of an error.
type envelope struct {
	Error *struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    any    `json:"code"`
	} `json:"error"`
}

// failed returns the error that data holds, if it holds one.
func (a *Answer) failed(data []byte) error {
	var e envelope
	if json.Unmarshal(data, &e) != nil || e.Error == nil {
		return nil
	}
	if e.Error.Code != nil {
		a.Code = fmt.Sprint(e.Error.Code)
	}
	return fmt.Errorf("%s (type %s, code %s)", e.Error.Message, e.Error.Type, a.Code)
}

func (p *plainClient) do(ctx context.Context, c Call, begun time.Time, a *Answer) error {
	path, write, read := "/chat/completions", Call.body, a.reader(begun)
	switch p.format {
	case Responses:
		path, write, read = "/responses", Call.responsesBody, a.responsesReader(begun)
	case Messages:
		path, write, read = "/messages", Call.messagesBody, a.messagesReader(begun)
	}
	body, err := write(c)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.format == Messages {
		req.Header.Set("X-Api-Key", c.APIKey)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	} else {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	a.Status = res.StatusCode
	for k := range res.Header {
		a.Header[k] = res.Header.Get(k)
	}
	if res.StatusCode == http.StatusOK && c.Stream {
		return a.readStream(res.Body, begun, p.format, read)
	}
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if p.format == Messages && res.StatusCode != http.StatusOK {
		a.judgeError(data)
	}
	if err := a.failed(data); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d without an envelope: %.200q", res.StatusCode, data)
	}
	return read("", data)
}

// reader adds an answer, or one event of it, to what is there already. Only events of
// /v1/messages have to have a name.
type reader func(name string, data []byte) error

// reader adds a completion, or one event of it, to the answer.
func (a *Answer) reader(begun time.Time) reader {
	return func(_ string, data []byte) error { return a.addChunk(data, begun) }
}

// chunk is a completion or one event of a streamed one.
type chunk struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Usage   *Usage `json:"usage"`
	Choices []struct {
		Message      *delta  `json:"message"`
		Delta        *delta  `json:"delta"`
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
}

type delta struct {
	Content   string `json:"content"`
	ToolCalls []struct {
		Index    int    `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// addChunk adds a completion, or one event of it, to the answer.
func (a *Answer) addChunk(data []byte, begun time.Time) error {
	var ch chunk
	if err := json.Unmarshal(data, &ch); err != nil {
		return fmt.Errorf("%w: %.100q", err, data)
	}
	a.Model = ch.Model
	if !slices.Contains(a.IDs, ch.ID) {
		a.IDs = append(a.IDs, ch.ID)
	}
	if ch.Usage != nil {
		a.Usage = ch.Usage
	}
	for _, c := range ch.Choices {
		if c.FinishReason != nil {
			a.FinishReason = *c.FinishReason
			a.Finishes++
		}
		d := c.Delta
		if d == nil {
			d = c.Message
		} else if d.Content != "" || len(d.ToolCalls) > 0 {
			a.Chunks++
			if a.FirstTokenMS < 0 {
				a.FirstTokenMS = time.Since(begun).Milliseconds()
			}
		}
		if d == nil {
			continue
		}
		a.Text += d.Content
		for _, t := range d.ToolCalls {
			for t.Index >= len(a.ToolCalls) {
				a.ToolCalls = append(a.ToolCalls, ToolCall{})
			}
			to := &a.ToolCalls[t.Index]
			to.ID += t.ID
			to.Name += t.Function.Name
			to.Arguments += t.Function.Arguments
		}
	}
	return nil
}

// readStream reads events until [DONE] or the end, as most libraries do: an end
// without [DONE] is no error by itself.
func (a *Answer) readStream(body io.Reader, begun time.Time, format Format, read reader) error {
	r, name := bufio.NewReader(body), ""
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, ":") {
			a.Comments = append(a.Comments, time.Since(begun).Milliseconds())
		}
		if v, ok := strings.CutPrefix(line, "event:"); ok || line == "" {
			name = strings.TrimSpace(v)
		}
		data, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		data = strings.TrimSpace(data)
		if data == "[DONE]" && format != Messages {
			a.Done = true
			return nil
		}
		if err := a.failed([]byte(data)); err != nil {
			if format == Messages {
				a.judgeError([]byte(data))
			}
			return err
		}
		if err := read(name, []byte(data)); err != nil {
			return err
		}
	}
}
