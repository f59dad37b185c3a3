// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"net/http"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/store"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func unauthorized() *store.Refusal {
	return store.Refuse(http.StatusUnauthorized, store.CodeUnauthorized, "This operation is denied. You need to be authenticated.")
}

// refusalXML writes the refusal for the legacy API.
func refusalXML(e *store.Refusal, requestID string) *xmltree.Node {
	return xmltree.New("Error", namespaces(), refusalAttrs(e, requestID))
}

// refusalNode writes it inside a task.
func refusalNode(e *store.Refusal, requestID string) *xmltree.Node {
	return xmltree.New("Error", refusalAttrs(e, requestID))
}

func refusalAttrs(e *store.Refusal, requestID string) []xmltree.Attr {
	return []xmltree.Attr{
		{Name: "majorErrorCode", Value: strconv.Itoa(e.Status)},
		{Name: "message", Value: refusalText(e, requestID)},
		{Name: "minorErrorCode", Value: e.Code},
	}
}

func refusalText(e *store.Refusal, requestID string) string {
	return "[ " + requestID + " ] " + e.Message
}

// refusalJSON writes it for cloudapi.
func refusalJSON(e *store.Refusal, requestID string) any {
	return map[string]any{"minorErrorCode": e.Code, "message": refusalText(e, requestID), "stackTrace": nil}
}
