// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"

// Namespaces returns the namespaces that VCD declares on every root element.
func Namespaces() []xmltree.Attr {
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
