// SPDX-License-Identifier: Apache-2.0

package vcdsim

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// A Refusal is an error as VCD answers it: status, minor code and message. Tasks that fail carry one too.
type Refusal struct { //nolint:errname // what VCD does is to refuse
	Status  int
	Code    string
	Message string
	Header  map[string]string
}

// Error implements error.
func (e *Refusal) Error() string {
	return fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
}

// Minor error codes.
const (
	codeForbidden    = "ACCESS_TO_RESOURCE_IS_FORBIDDEN"
	codeBadRequest   = "BAD_REQUEST"
	codeDuplicate    = "DUPLICATE_NAME"
	codeBusy         = "BUSY_ENTITY"
	codeUnauthorized = "UNAUTHORIZED"
	codeNotFound     = "NOT_FOUND"
	codeInternal     = "INTERNAL_SERVER_ERROR"
)

func refuse(status int, code, format string, args ...any) *Refusal {
	return &Refusal{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *Refusal {
	return refuse(http.StatusBadRequest, codeBadRequest, format, args...)
}

// forbidden is VCD's answer when an entity does not exist or is not visible to the caller.
func forbidden(operation, id string) *Refusal {
	return refuse(http.StatusForbidden, codeForbidden,
		"Either you need some or all of the following rights [Base] to perform operations [%s] for %s or the target "+
			"entity is invalid.",
		operation, id)
}

func duplicateName(name string) *Refusal {
	return refuse(http.StatusBadRequest, codeDuplicate, "The VCD entity %s already exists.", name)
}

func unauthorized() *Refusal {
	return refuse(http.StatusUnauthorized, codeUnauthorized, "This operation is denied. You need to be authenticated.")
}

// namespaces are what VCD declares on every root element.
func namespaces() []xmltree.Attr {
	return []xmltree.Attr{
		{Name: "xmlns", Value: "http://www.vmware.com/vcloud/v1.5"},
		{Name: "xmlns:ovf", Value: "http://schemas.dmtf.org/ovf/envelope/1"},
		{Name: "xmlns:vssd", Value: "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_VirtualSystemSettingData"},
		{Name: "xmlns:common", Value: "http://schemas.dmtf.org/wbem/wscim/1/common"},
		{
			Name:  "xmlns:rasd",
			Value: "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData",
		},
		{Name: "xmlns:vmw", Value: "http://www.vmware.com/schema/ovf"},
		{Name: "xmlns:ovfenv", Value: "http://schemas.dmtf.org/ovf/environment/1"},
		{Name: "xmlns:vmext", Value: "http://www.vmware.com/vcloud/extension/v1.5"},
	}
}

// xml writes the refusal for the legacy API.
func (e *Refusal) xml(requestID string) *xmltree.Node {
	return xmltree.New("Error", namespaces(), e.attrs(requestID))
}

// node writes it inside a task.
func (e *Refusal) node(requestID string) *xmltree.Node {
	return xmltree.New("Error", e.attrs(requestID))
}

func (e *Refusal) attrs(requestID string) []xmltree.Attr {
	return []xmltree.Attr{
		{Name: "majorErrorCode", Value: strconv.Itoa(e.Status)},
		{Name: "message", Value: e.text(requestID)},
		{Name: "minorErrorCode", Value: e.Code},
	}
}

func (e *Refusal) text(requestID string) string {
	return "[ " + requestID + " ] " + e.Message
}

// json writes it for cloudapi.
func (e *Refusal) json(requestID string) any {
	return map[string]any{"minorErrorCode": e.Code, "message": e.text(requestID), "stackTrace": nil}
}
