# SPDX-License-Identifier: Apache-2.0

data "vcd_org" "org" {
  name = var.org
}

data "vcd_org_vdc" "vdc" {
  name = var.vdc
}

data "vcd_vdc_group" "group" {
  for_each = local.groups
  name     = each.key
}

data "vcd_nsxt_edgegateway" "gateway" {
  for_each = local.gateways
  name     = each.key
  owner_id = local.owners[each.key]
}

data "vcd_storage_profile" "standard" {
  name = "standard"
}

data "vcd_org_user" "admin" {
  name = "admin"
}
