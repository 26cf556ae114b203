// SPDX-License-Identifier: Apache-2.0

// OTLP profiles by the types that OpenTelemetry publishes for Go: go.opentelemetry.io/proto/otlp/profiles/v1development.
//
//	otlp read FILE	a line of JSON: unknown fields, rows that break a rule of profiles.proto, totals and stacks by value type
//	otlp write FILE	a file with every form of a sample and every kind of attribute; what is in it, as read prints it
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	profilespb "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// unknown counts messages that have fields which the definition does not have, at any depth.
func unknown(m protoreflect.Message) int {
	count := 0
	if len(m.GetUnknown()) > 0 {
		count++
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len(); i++ {
				count += unknown(v.List().Get(i).Message())
			}
		default:
			count += unknown(v.Message())
		}
		return true
	})
	return count
}

type typeFacts struct {
	Total   int64            `json:"total"`
	Samples int              `json:"samples"`
	Points  int              `json:"points"`
	Stacks  map[string]int64 `json:"stacks"`
}

type facts struct {
	Unknown   int                   `json:"unknown"`
	Broken    []string              `json:"broken"`
	Types     map[string]*typeFacts `json:"types"`
	Resources []map[string]string   `json:"resources"`
	Keys      map[string]int        `json:"keys"`
	Frames    map[string]int        `json:"frame_types"`
	Duration  uint64                `json:"duration"`
	Start     uint64                `json:"start"`
}

func (f *facts) broken(format string, args ...any) {
	if len(f.Broken) < 20 {
		f.Broken = append(f.Broken, fmt.Sprintf(format, args...))
	}
}

// isZero says whether the first row of a table is there and says nothing. A link may have its ids in full, as zeros.
func isZero(m proto.Message) bool {
	if l, ok := m.(*profilespb.Link); ok {
		return strings.Trim(string(l.TraceId)+string(l.SpanId), "\x00") == ""
	}
	return proto.Size(m) == 0
}

// table checks a table's first row, and that no row is there twice. used marks those that something refers to.
func table[T proto.Message](f *facts, name string, rows []T) (use func(int32)) {
	used := make([]bool, len(rows))
	if len(rows) == 0 || !isZero(rows[0]) {
		f.broken("%s: the first row is not zero", name)
	}
	seen := map[string]bool{}
	for i, row := range rows {
		text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(row)
		if i > 0 && seen[string(text)] {
			f.broken("%s: row %d is there twice", name, i)
		}
		seen[string(text)] = true
	}
	orphans[name] = used
	return func(i int32) {
		if i < 0 || int(i) >= len(rows) {
			f.broken("%s: no row %d", name, i)
		} else {
			used[i] = true
		}
	}
}

var orphans = map[string][]bool{}

func look(data *profilespb.ProfilesData) *facts {
	f := &facts{Unknown: unknown(data.ProtoReflect()), Types: map[string]*typeFacts{}, Keys: map[string]int{}, Frames: map[string]int{}}
	d := data.Dictionary
	if len(d.StringTable) == 0 || d.StringTable[0] != "" {
		f.broken("strings: the first is not empty")
	}
	text := func(i int32) string {
		if i < 0 || int(i) >= len(d.StringTable) {
			f.broken("strings: no row %d", i)
			return ""
		}
		return d.StringTable[i]
	}
	mapping, location := table(f, "mappings", d.MappingTable), table(f, "locations", d.LocationTable)
	function, link := table(f, "functions", d.FunctionTable), table(f, "links", d.LinkTable)
	attribute, stack := table(f, "attributes", d.AttributeTable), table(f, "stacks", d.StackTable)
	attributes := func(list []int32) {
		keys := map[string]bool{}
		for _, i := range list {
			attribute(i)
			key := text(d.AttributeTable[i].KeyStrindex)
			if keys[key] {
				f.broken("attributes: %q twice in one place", key)
			}
			keys[key] = true
			f.Keys[key]++
		}
	}
	for _, m := range d.MappingTable {
		text(m.FilenameStrindex)
		attributes(m.AttributeIndices)
	}
	for _, l := range d.LocationTable {
		mapping(l.MappingIndex)
		attributes(l.AttributeIndices)
		for _, line := range l.Lines {
			function(line.FunctionIndex)
		}
		for _, i := range l.AttributeIndices {
			if text(d.AttributeTable[i].KeyStrindex) == "profile.frame.type" {
				f.Frames[d.AttributeTable[i].Value.GetStringValue()]++
			}
		}
	}
	for _, s := range d.StackTable {
		for _, i := range s.LocationIndices {
			location(i)
		}
	}
	for _, r := range data.ResourceProfiles {
		resource := map[string]string{}
		for _, a := range r.GetResource().GetAttributes() {
			resource[a.Key] = a.Value.GetStringValue()
		}
		f.Resources = append(f.Resources, resource)
		for _, s := range r.ScopeProfiles {
			for _, p := range s.Profiles {
				profile(f, d, p, text, attributes, stack, link)
			}
		}
	}
	for name, used := range orphans {
		for i := 1; i < len(used); i++ {
			if !used[i] {
				f.broken("%s: nothing refers to row %d", name, i)
			}
		}
	}
	return f
}

func profile(f *facts, d *profilespb.ProfilesDictionary, p *profilespb.Profile, text func(int32) string, attributes func([]int32), stack, link func(int32)) {
	attributes(p.AttributeIndices)
	name := text(p.SampleType.GetTypeStrindex()) + "/" + text(p.SampleType.GetUnitStrindex())
	t := f.Types[name]
	if t == nil {
		t = &typeFacts{Stacks: map[string]int64{}}
		f.Types[name] = t
	}
	f.Start, f.Duration = p.TimeUnixNano, p.DurationNano
	for _, s := range p.Samples {
		attributes(s.AttributeIndices)
		stack(s.StackIndex)
		link(s.LinkIndex)
		if len(s.Values) == 0 && len(s.TimestampsUnixNano) == 0 || len(s.Values) > 0 && len(s.TimestampsUnixNano) > 0 && len(s.Values) != len(s.TimestampsUnixNano) {
			f.broken("a sample has %d values and %d times", len(s.Values), len(s.TimestampsUnixNano))
		}
		sum := int64(0)
		for _, v := range s.Values {
			sum += v
		}
		if len(s.Values) == 0 {
			sum = int64(len(s.TimestampsUnixNano))
		}
		t.Total += sum
		t.Samples++
		t.Points += max(len(s.Values), len(s.TimestampsUnixNano))
		frames := []string{}
		for _, i := range d.StackTable[s.StackIndex].LocationIndices {
			for _, line := range d.LocationTable[i].Lines {
				frames = append(frames, text(d.FunctionTable[line.FunctionIndex].NameStrindex))
			}
		}
		if sum != 0 {
			t.Stacks[strings.Join(frames, ";")] += sum
		}
	}
}

// writer makes rows of the dictionary as they are asked for.
type writer struct {
	d    *profilespb.ProfilesDictionary
	text map[string]int32
}

func (w *writer) str(s string) int32 {
	i, ok := w.text[s]
	if !ok {
		i = int32(len(w.d.StringTable))
		w.d.StringTable, w.text[s] = append(w.d.StringTable, s), i
	}
	return i
}

func (w *writer) attribute(key string, value *commonpb.AnyValue, unit string) int32 {
	w.d.AttributeTable = append(w.d.AttributeTable, &profilespb.KeyValueAndUnit{KeyStrindex: w.str(key), Value: value, UnitStrindex: w.str(unit)})
	return int32(len(w.d.AttributeTable) - 1)
}

func str(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func number(n int64) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: n}}
}

// stack has each frame as "name" or "name:frame type", leaf first.
func (w *writer) stack(frames ...string) int32 {
	s := &profilespb.Stack{}
	for _, frame := range frames {
		name, kind, _ := strings.Cut(frame, ":")
		w.d.FunctionTable = append(w.d.FunctionTable, &profilespb.Function{NameStrindex: w.str(name), FilenameStrindex: w.str("/src/" + name)})
		l := &profilespb.Location{Address: uint64(0x1000 + len(w.d.LocationTable)), Lines: []*profilespb.Line{{FunctionIndex: int32(len(w.d.FunctionTable) - 1), Line: 7}}}
		if kind != "" {
			l.AttributeIndices = []int32{w.attribute("profile.frame.type", str(kind), "")}
		} else {
			l.MappingIndex = 1
		}
		w.d.LocationTable = append(w.d.LocationTable, l)
		s.LocationIndices = append(s.LocationIndices, int32(len(w.d.LocationTable)-1))
	}
	w.d.StackTable = append(w.d.StackTable, s)
	return int32(len(w.d.StackTable) - 1)
}

func example() *profilespb.ProfilesData {
	d := &profilespb.ProfilesDictionary{
		MappingTable: []*profilespb.Mapping{{}}, LocationTable: []*profilespb.Location{{}}, FunctionTable: []*profilespb.Function{{}},
		LinkTable:   []*profilespb.Link{{TraceId: make([]byte, 16), SpanId: make([]byte, 8)}, {TraceId: []byte("0123456789abcdef"), SpanId: []byte("01234567")}},
		StringTable: []string{""}, AttributeTable: []*profilespb.KeyValueAndUnit{{}}, StackTable: []*profilespb.Stack{{}},
	}
	w := &writer{d, map[string]int32{"": 0}}
	d.MappingTable = append(d.MappingTable, &profilespb.Mapping{MemoryStart: 0x1000, MemoryLimit: 0x9000, FileOffset: 0x1000, FilenameStrindex: w.str("/usr/bin/shop"),
		AttributeIndices: []int32{w.attribute("process.executable.build_id.gnu", str("abcdef0123"), "")}})
	pid := w.attribute("process.pid", number(4711), "")
	thread := w.attribute("thread.name", str("worker"), "")
	size := w.attribute("size", number(-5), "By")
	flag := w.attribute("flag", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}, "")
	ratio := w.attribute("ratio", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}, "")
	blob := w.attribute("blob", &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte{1, 0xff}}}, "")
	list := w.attribute("list", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{str("x")}}}}, "")
	byIndex := w.attribute("by.index", &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValueStrindex{StringValueStrindex: w.str("indexed")}}, "")
	work, idle := w.stack("read", "work", "main"), w.stack("sys_read:kernel", "run:v8js", "handle:jvm", "go:cpython")
	const start = 1790000000000000000
	cpu := &profilespb.ValueType{TypeStrindex: w.str("cpu"), UnitStrindex: w.str("nanoseconds")}
	count := &profilespb.ValueType{TypeStrindex: w.str("samples"), UnitStrindex: w.str("count")}
	samples := func(a, b, c []int64) []*profilespb.Sample {
		return []*profilespb.Sample{
			{StackIndex: work, AttributeIndices: []int32{pid, thread, size, flag, ratio}, Values: a},
			{StackIndex: idle, AttributeIndices: []int32{pid, byIndex}, LinkIndex: 1, Values: b, TimestampsUnixNano: []uint64{start + 5, start + 9}},
			{StackIndex: idle, AttributeIndices: []int32{blob, list}, Values: c, TimestampsUnixNano: []uint64{start + 7}},
			{Values: []int64{4}},
		}
	}
	one := func(t *profilespb.ValueType, s []*profilespb.Sample) *profilespb.Profile {
		return &profilespb.Profile{SampleType: t, Samples: s, TimeUnixNano: start, DurationNano: 1e10, PeriodType: cpu, Period: 10101010, ProfileId: []byte("0123456789abcdef")}
	}
	resource := func(service, container string, profiles ...*profilespb.Profile) *profilespb.ResourceProfiles {
		attributes := []*commonpb.KeyValue{{Key: "host.name", Value: str("web-1")}, {Key: "service.name", Value: str(service)}, {Key: "os.type", Value: str("linux")}}
		if container != "" {
			attributes = append(attributes, &commonpb.KeyValue{Key: "container.id", Value: str(container)})
		}
		return &profilespb.ResourceProfiles{Resource: &resourcepb.Resource{Attributes: attributes},
			ScopeProfiles: []*profilespb.ScopeProfiles{{Scope: &commonpb.InstrumentationScope{Name: "example", Version: "1"}, Profiles: profiles}}}
	}
	other := one(count, []*profilespb.Sample{{StackIndex: work, Values: []int64{1000}}})
	other.OriginalPayloadFormat, other.OriginalPayload = "pprof", []byte("what it was")
	return &profilespb.ProfilesData{Dictionary: d, ResourceProfiles: []*profilespb.ResourceProfiles{
		resource("shop", strings.Repeat("0123456789abcdef", 4), one(count, samples([]int64{3}, nil, []int64{1})), one(cpu, samples([]int64{30}, []int64{10, 20}, []int64{9}))),
		resource("bank", "", other),
	}}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	data := &profilespb.ProfilesData{}
	switch os.Args[1] {
	case "read":
		bytes, err := os.ReadFile(os.Args[2])
		must(err)
		must(proto.UnmarshalOptions{DiscardUnknown: false}.Unmarshal(bytes, data))
	case "write":
		data = example()
		bytes, err := proto.Marshal(data)
		must(err)
		must(os.WriteFile(os.Args[2], bytes, 0o644))
	}
	must(json.NewEncoder(os.Stdout).Encode(look(data)))
}
