module otlp

go 1.24.0

require (
	go.opentelemetry.io/proto/otlp v1.10.0
	go.opentelemetry.io/proto/otlp/profiles/v1development v0.3.0
	google.golang.org/protobuf v1.36.11
)
