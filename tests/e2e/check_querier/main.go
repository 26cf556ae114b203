// SPDX-License-Identifier: Apache-2.0

// Asks a server as Grafana's data source for Pyroscope does: by the generated client of github.com/grafana/pyroscope/api.
//
//	grafana URL < lines of "METHOD REQUEST-AS-JSON"	a line of JSON for each: the answer, or {"error": code, "message": text}
//	grafana --descriptors FILE			the service's descriptors, for other clients
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// unknown counts fields that the message's definition does not have, at any depth.
func unknown(m protoreflect.Message) int {
	count := 0
	if len(m.GetUnknown()) > 0 {
		count++
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
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

func fail(code, text string) string {
	line, _ := json.Marshal(map[string]string{"error": code, "message": text})
	return string(line)
}

func call[Req, Res any](do func(context.Context, *connect.Request[Req]) (*connect.Response[Res], error), text string) string {
	request := new(Req)
	if err := protojson.Unmarshal([]byte(text), any(request).(proto.Message)); err != nil {
		return fail("request", err.Error())
	}
	answer, err := do(context.Background(), connect.NewRequest(request))
	if err != nil {
		var told *connect.Error
		if errors.As(err, &told) {
			return fail(told.Code().String(), told.Message())
		}
		return fail("other", err.Error())
	}
	message := any(answer.Msg).(proto.Message)
	if count := unknown(message.ProtoReflect()); count > 0 {
		return fail("unknown fields", fmt.Sprint(count))
	}
	line, err := protojson.Marshal(message)
	if err != nil {
		return fail("answer", err.Error())
	}
	return string(line)
}

func ask(c querierv1connect.QuerierServiceClient, method, request string) string {
	switch method {
	case "ProfileTypes":
		return call(c.ProfileTypes, request)
	case "LabelNames":
		return call(c.LabelNames, request)
	case "LabelValues":
		return call(c.LabelValues, request)
	case "Series":
		return call(c.Series, request)
	case "SelectMergeStacktraces":
		return call(c.SelectMergeStacktraces, request)
	case "SelectMergeSpanProfile":
		return call(c.SelectMergeSpanProfile, request)
	case "SelectMergeProfile":
		return call(c.SelectMergeProfile, request)
	case "SelectSeries":
		return call(c.SelectSeries, request)
	case "SelectHeatmap":
		return call(c.SelectHeatmap, request)
	case "Diff":
		return call(c.Diff, request)
	case "GetProfileStats":
		return call(c.GetProfileStats, request)
	case "AnalyzeQuery":
		return call(c.AnalyzeQuery, request)
	}
	return fail("method", method)
}

func addFile(f protoreflect.FileDescriptor, seen map[string]bool, set *descriptorpb.FileDescriptorSet) {
	if seen[f.Path()] {
		return
	}
	seen[f.Path()] = true
	for i := 0; i < f.Imports().Len(); i++ {
		addFile(f.Imports().Get(i).FileDescriptor, seen, set)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "--descriptors" {
		set := &descriptorpb.FileDescriptorSet{}
		addFile(querierv1.File_querier_v1_querier_proto, map[string]bool{}, set)
		bytes, err := proto.Marshal(set)
		if err == nil {
			err = os.WriteFile(os.Args[2], bytes, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var options []connect.ClientOption
	if len(os.Args) == 3 && os.Args[2] == "json" {
		options = append(options, connect.WithProtoJSON())
	}
	client := querierv1connect.NewQuerierServiceClient(http.DefaultClient, os.Args[1], options...)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		method, request, _ := strings.Cut(lines.Text(), " ")
		fmt.Println(ask(client, method, request))
	}
}
