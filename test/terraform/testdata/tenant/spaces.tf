# SPDX-License-Identifier: Apache-2.0

data "vcd_ip_space" "public" {
  for_each = local.spaces
  provider = vcd.system
  name     = each.key
}

resource "vcd_ip_space_ip_allocation" "service" {
  for_each    = local.spaces
  org_id      = data.vcd_org.org.id
  ip_space_id = data.vcd_ip_space.public[each.key].id
  type        = "FLOATING_IP"
}

resource "vcd_ip_space_ip_allocation" "inbound" {
  for_each    = local.spaces
  org_id      = data.vcd_org.org.id
  ip_space_id = data.vcd_ip_space.public[each.key].id
  type        = "FLOATING_IP"
}

resource "vcd_ip_space_ip_allocation" "manual" {
  for_each    = local.spaces
  org_id      = data.vcd_org.org.id
  ip_space_id = data.vcd_ip_space.public[each.key].id
  type        = "FLOATING_IP"
  usage_state = "USED_MANUAL"
  description = "By hand, revision ${var.revision}"
}

resource "vcd_ip_space_ip_allocation" "prefix" {
  for_each      = local.spaces
  org_id        = data.vcd_org.org.id
  ip_space_id   = data.vcd_ip_space.public[each.key].id
  type          = "IP_PREFIX"
  prefix_length = 28
}
