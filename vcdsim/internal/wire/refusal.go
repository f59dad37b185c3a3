// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// RefusalXML returns the document of a refusal for the legacy API.
func RefusalXML(e *store.Refusal, requestID string) *xmltree.Node {
	return xmltree.New("Error", Namespaces(), refusalAttrs(e, requestID))
}

// RefusalNode returns the element of a refusal in a task.
func RefusalNode(e *store.Refusal, requestID string) *xmltree.Node {
	return xmltree.New("Error", refusalAttrs(e, requestID))
}

func refusalAttrs(e *store.Refusal, requestID string) []xmltree.Attr {
	return []xmltree.Attr{
		{Name: "majorErrorCode", Value: strconv.Itoa(e.Status)},
		{Name: "message", Value: RefusalText(e, requestID)},
		{Name: "minorErrorCode", Value: e.Code},
	}
}

// RefusalText returns the message with the ID of the request.
func RefusalText(e *store.Refusal, requestID string) string {
	return "[ " + requestID + " ] " + e.Message
}

// RefusalJSON returns the document of a refusal for cloudapi.
func RefusalJSON(e *store.Refusal, requestID string) any {
	return map[string]any{"minorErrorCode": e.Code, "message": RefusalText(e, requestID), "stackTrace": nil}
}
