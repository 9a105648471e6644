package telemetry

import "github.com/rebound-llm/rebound/recovery/transcript"

// The names of OpenTelemetry's semantic conventions for generative AI that are used here, in the
// latest published version (opentelemetry.io/docs/specs/semconv/gen-ai), which backends support. The
// conventions are in development, so the names occur only in this file. As of November 2026 the next
// version (github.com/open-telemetry/semantic-conventions-genai) renames cache_creation to
// cache_write, client.operation.duration and .time_to_first_chunk to client.inference.*, and splits
// client.token.usage.
const (
	genOperation    = "gen_ai.operation.name"
	genProvider     = "gen_ai.provider.name"
	genRequestModel = "gen_ai.request.model"
	genStream       = "gen_ai.request.stream"
	genResponse     = "gen_ai.response.model"
	genFirstChunk   = "gen_ai.response.time_to_first_chunk" // seconds
	genFinish       = "gen_ai.response.finish_reasons"
	genConversation = "gen_ai.conversation.id"
	genInput        = "gen_ai.usage.input_tokens"
	genOutput       = "gen_ai.usage.output_tokens"
	genCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	genCacheWrite   = "gen_ai.usage.cache_creation.input_tokens"
	genReasoning    = "gen_ai.usage.reasoning.output_tokens"
	genTokenType    = "gen_ai.token.type"
	errorType       = "error.type"

	genDurationMetric   = "gen_ai.client.operation.duration"
	genFirstChunkMetric = "gen_ai.client.operation.time_to_first_chunk"
	genTokensMetric     = "gen_ai.client.token.usage"

	// genOpenAI and genAnthropic are the providers as the conventions define them: by the API format.
	// The gateway does not know the provider behind an upstream.
	genOpenAI    = "openai"
	genAnthropic = "anthropic"
	genChat      = "chat"

	// own is the prefix of attributes outside the conventions: the fields of events.
	own = "rebound."
)

// Buckets recommended by the conventions.
var (
	genDurationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	genTokensBuckets   = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// usageNames are the attribute names of a usage, by kind.
var usageNames = [kinds]string{genInput, genOutput, genCacheRead, genCacheWrite, genReasoning}

// provider returns the provider's name for the format of a request_done.
func provider(format string) string {
	if format == transcript.Messages.String() {
		return genAnthropic
	}
	return genOpenAI
}
