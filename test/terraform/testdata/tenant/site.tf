# SPDX-License-Identifier: Apache-2.0

# Objects that the system administrator creates for the tenant.

resource "vcd_vm_sizing_policy" "tiny" {
  provider    = vcd.system
  name        = "tf-tiny"
  description = "Tiny, revision ${var.revision}"
  cpu {
    count = var.revision
  }
  memory {
    size_in_mb = 512
  }
}

resource "vcd_global_role" "auditor" {
  provider               = vcd.system
  name                   = "tf-auditor"
  description            = "Audits, revision ${var.revision}"
  rights                 = ["Organization vDC Gateway: View"]
  publish_to_all_tenants = true
}

resource "vcd_rights_bundle" "bundle" {
  provider               = vcd.system
  name                   = "tf-bundle"
  description            = "Rights, revision ${var.revision}"
  rights                 = ["Organization vDC Gateway: View"]
  publish_to_all_tenants = false
  tenants                = [var.org]
}

data "vcd_nsxt_manager" "manager" {
  provider = vcd.system
  name     = "nsx1"
}

data "vcd_nsxt_edgegateway_qos_profile" "qos" {
  provider        = vcd.system
  nsxt_manager_id = data.vcd_nsxt_manager.manager.id
  name            = "qos-100m"
}

resource "vcd_nsxt_edgegateway_rate_limiting" "gateway" {
  for_each           = local.gateways
  provider           = vcd.system
  org                = var.org
  edge_gateway_id    = data.vcd_nsxt_edgegateway.gateway[each.key].id
  ingress_profile_id = data.vcd_nsxt_edgegateway_qos_profile.qos.id
}

resource "vcd_ip_space" "own" {
  for_each                    = local.spaces
  provider                    = vcd.system
  name                        = "tf-own"
  description                 = "Own addresses, revision ${var.revision}"
  type                        = "PRIVATE"
  org_id                      = data.vcd_org.org.id
  internal_scope              = ["10.66.0.0/16"]
  route_advertisement_enabled = false

  ip_range {
    start_address = "10.66.0.10"
    end_address   = "10.66.0.${19 + var.revision}"
  }
}
